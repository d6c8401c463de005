"""Forms of traces: the filter of the list, and filter and zoom of one timeline."""

from datetime import datetime
from typing import Any, ClassVar, NamedTuple

from django import forms
from django.http import QueryDict
from django.utils import timezone
from tooltrail.events import ID_MAX_LENGTH

from audit.pages.show.list_range import LIST_RANGES
from audit.pages.traces.waterfall import View
from audit.queries import time_range
from audit.queries.traces import TraceFilter


class TimeSpan(NamedTuple):
    """From an instant on, and before another; None: without that bound."""

    since: datetime | None
    until: datetime | None


class TraceFilterForm(forms.Form):
    """Which traces are listed. None if a value is invalid."""

    RANGES: ClassVar = LIST_RANGES
    STATES: ClassVar[dict[str, str]] = {
        "": "All",
        "failed": "Failed",
        "violation": "Violations",
        "open": "Open",
        "ok": "OK",
        "decided": "With decisions",
    }

    range = forms.ChoiceField(
        choices=[(name, choice.label) for name, choice in RANGES.items()], required=False
    )
    state = forms.ChoiceField(choices=list(STATES.items()), required=False)
    trace = forms.CharField(max_length=ID_MAX_LENGTH, required=False, strip=True)

    def __init__(self, data: QueryDict, now: datetime) -> None:
        super().__init__(data)
        self._now = now
        self.times, self._problem = TimeSpan(None, None), ""
        if data.get("from") or data.get("to"):
            zone = timezone.get_current_timezone()
            read = time_range.read(
                {"from": data.get("from", ""), "to": data.get("to", "")}, now=now, zone=zone
            )
            self._problem = read.problem
            self.times = TimeSpan(read.range.start, read.range.end)

    def clean(self) -> dict[str, Any]:
        """A range of its own must be one."""
        if self._problem:
            raise forms.ValidationError(self._problem)
        return self.cleaned_data

    def wanted(self) -> TraceFilter:
        """The filter; of an invalid form what is valid, to be shown only."""
        read = self.cleaned_data
        since, until = self.times
        length = self.RANGES[read.get("range", "")].length
        if since is None and length is not None:
            since = self._now - length
        return TraceFilter(read.get("state", ""), read.get("trace", ""), since, until)


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
