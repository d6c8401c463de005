"""The form of a new incident, for pages and the API."""

from django import forms

TITLE_MAX = 100
REASON_MAX = 1_000


class IncidentForm(forms.Form):
    """Title and reason. `q` is read by the caller."""

    title = forms.CharField(
        max_length=TITLE_MAX,
        widget=forms.TextInput(attrs={"class": "form-control", "autocomplete": "off"}),
    )
    reason = forms.CharField(
        max_length=REASON_MAX,
        help_text="Title and reason become entries of the ledger, which are never removed.",
        widget=forms.Textarea(attrs={"class": "form-control", "rows": 2}),
    )
