"""The forms of the inbox."""

from datetime import datetime
from typing import ClassVar

from django import forms

from audit.pages.show.list_range import LIST_RANGES
from audit.queries.inbox import InboxFilter


class InboxFilterForm(forms.Form):
    """Which refused lines are listed. With a value that cannot be read, none."""

    RANGES: ClassVar = LIST_RANGES
    STATES: ClassVar[dict[str, str]] = {
        "": "Waiting",
        "sent": "Sent again",
        "discarded": "Discarded",
        "all": "All",
    }

    range = forms.ChoiceField(choices=[(k, v[0]) for k, v in RANGES.items()], required=False)
    state = forms.ChoiceField(choices=list(STATES.items()), required=False)
    code = forms.CharField(max_length=64, required=False, strip=True)
    before = forms.UUIDField(required=False)
    after = forms.UUIDField(required=False)

    def wanted(self, now: datetime) -> InboxFilter:
        """What the address asks for; of a form with errors, to fill it in again."""
        read = self.cleaned_data
        since = self.RANGES[read.get("range", "")][1]
        return InboxFilter(
            state=read.get("state", ""),
            code=read.get("code", ""),
            since=now - since if since else None,
        )


class DiscardForm(forms.Form):
    """Why a refused line needs nothing more."""

    reason = forms.CharField(
        max_length=500,
        error_messages={"required": "Say why, for whoever finds the line later."},
        widget=forms.Textarea(attrs={"class": "form-control", "rows": 2}),
    )


class DiscardAllForm(InboxFilterForm, DiscardForm):
    """Why all waiting lines of one code, up to one that was seen, need nothing more."""

    code = forms.CharField(max_length=64, strip=True)
    until = forms.UUIDField()
