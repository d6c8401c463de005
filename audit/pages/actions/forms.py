"""The filter of the audit log."""

from datetime import datetime
from typing import ClassVar

from django import forms

from audit.pages.show.list_range import LIST_RANGES
from audit.queries.actions import ActionFilter


class ActionFilterForm(forms.Form):
    """Which actions are listed. None if a value is invalid."""

    RANGES: ClassVar = LIST_RANGES

    range = forms.ChoiceField(choices=[(k, v[0]) for k, v in RANGES.items()], required=False)
    actor = forms.CharField(max_length=150, required=False, strip=True)
    verb = forms.CharField(max_length=64, required=False, strip=True)
    subject = forms.CharField(max_length=300, required=False, strip=True)

    def wanted(self, now: datetime) -> ActionFilter:
        """Return the filter from the URL. If the form has errors, it holds the valid values."""
        read = self.cleaned_data
        since = self.RANGES[read.get("range", "")][1]
        return ActionFilter(
            actor=read.get("actor", ""),
            verb=read.get("verb", ""),
            subject=read.get("subject", ""),
            since=now - since if since else None,
        )
