"""The filter of the audit log."""

from django import forms

from audit.pages.show.list_range import RangedForm
from audit.queries.actions import ActionFilter


class ActionFilterForm(RangedForm):
    """Which actions are listed. None if a value is invalid."""

    actor = forms.CharField(max_length=150, required=False, strip=True)
    verb = forms.CharField(max_length=64, required=False, strip=True)
    subject = forms.CharField(max_length=300, required=False, strip=True)

    def wanted(self) -> ActionFilter:
        """Return the filter from the URL. If the form has errors, it holds the valid values."""
        read = self.cleaned_data
        return ActionFilter(
            read.get("actor", ""),
            read.get("verb", ""),
            read.get("subject", ""),
            *self.span(),
        )
