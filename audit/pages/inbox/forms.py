"""Forms of the inbox."""

from datetime import datetime
from typing import ClassVar

from django import forms

from audit.pages.show.list_range import LIST_RANGES
from audit.queries.inbox import InboxFilter


class InboxFilterForm(forms.Form):
    """Which rejected lines are listed. None if a value is invalid."""

    RANGES: ClassVar = LIST_RANGES
    STATES: ClassVar[dict[str, str]] = {
        "": "Waiting",
        "sent": "Resent",
        "discarded": "Discarded",
        "all": "All",
    }

    range = forms.ChoiceField(choices=[(k, v[0]) for k, v in RANGES.items()], required=False)
    state = forms.ChoiceField(choices=list(STATES.items()), required=False)
    code = forms.CharField(max_length=64, required=False, strip=True)
    before = forms.UUIDField(required=False)
    after = forms.UUIDField(required=False)

    def wanted(self, now: datetime) -> InboxFilter:
        """Return the filter from the URL. If the form has errors, it holds the valid values."""
        read = self.cleaned_data
        since = self.RANGES[read.get("range", "")][1]
        return InboxFilter(
            state=read.get("state", ""),
            code=read.get("code", ""),
            since=now - since if since else None,
        )


class DiscardForm(forms.Form):
    """Why a rejected line is discarded."""

    reason = forms.CharField(
        max_length=500,
        error_messages={"required": "Enter a reason. It is kept with the event."},
        widget=forms.Textarea(attrs={"class": "form-control", "rows": 2}),
    )


class DiscardAllForm(InboxFilterForm, DiscardForm):
    """Why all waiting lines of one code are discarded, up to the newest line that was seen."""

    code = forms.CharField(max_length=64, strip=True)
    until = forms.UUIDField()
