"""The forms with which a person approves definitions."""

from django import forms

from audit.work.definitions import REASON_MAX


class ApproveForm(forms.Form):
    """The reason of an approval, or of its withdrawal."""

    reason = forms.CharField(
        max_length=REASON_MAX, widget=forms.Textarea(attrs={"class": "form-control", "rows": 2})
    )
