"""The form with which a person approves a definition."""

from django import forms

from audit.work.definitions import REASON_MAX


class ApproveForm(forms.Form):
    """The reason of an approval."""

    reason = forms.CharField(
        max_length=REASON_MAX, widget=forms.Textarea(attrs={"class": "form-control", "rows": 2})
    )
