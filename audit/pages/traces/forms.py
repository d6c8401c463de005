"""Forms of traces: the filter of the list, and filter and zoom of one timeline."""

from typing import ClassVar

from django import forms
from tooltrail.events import ID_MAX_LENGTH

from audit.pages.show.list_range import RangedForm
from audit.pages.traces.waterfall import View
from audit.queries.traces import TraceFilter


class TraceFilterForm(RangedForm):
    """Which traces are listed. None if a value is invalid."""

    STATES: ClassVar[dict[str, str]] = {
        "": "All",
        "failed": "Failed",
        "violation": "Violations",
        "open": "Open",
        "ok": "OK",
        "decided": "With decisions",
    }

    state = forms.ChoiceField(choices=list(STATES.items()), required=False)
    trace = forms.CharField(max_length=ID_MAX_LENGTH, required=False, strip=True)

    def wanted(self) -> TraceFilter:
        """The filter; of an invalid form what is valid, to be shown only."""
        read = self.cleaned_data
        return TraceFilter(read.get("state", ""), read.get("trace", ""), *self.span())


class TimelineForm(forms.Form):
    """Which part of a trace is shown. An invalid value is reported and hides nothing."""

    ONLY: ClassVar[dict[str, str]] = {
        "": "All",
        "failed": "Failed",
        "violation": "Violations",
        "open": "Open",
        "cancelled": "Cancelled",
        "path": "Path",
    }

    call = forms.UUIDField(required=False)
    tool = forms.CharField(max_length=200, required=False, strip=False)
    only = forms.ChoiceField(choices=list(ONLY.items()), required=False)
    find = forms.CharField(max_length=200, required=False, strip=True)
    row = forms.IntegerField(min_value=0, max_value=10**6, required=False)
    zoom_from = forms.IntegerField(min_value=0, max_value=10**17, required=False)
    zoom_to = forms.IntegerField(min_value=1, max_value=10**17, required=False)

    def view(self) -> View:
        """Return the view from the URL. If the form has errors, the view holds its valid values."""
        read = self.cleaned_data
        start, end = read.get("zoom_from"), read.get("zoom_to")
        return View(
            only=read.get("only", ""),
            find=read.get("find", ""),
            tool=read.get("tool", ""),
            zoom=(start or 0, end) if end is not None else None,
            first_row=read.get("row"),
            selected=read.get("call"),
        )
