"""Forms of holds and erasures, with their validation."""

from datetime import UTC, datetime
from typing import Any

from django import forms

from audit.retention.holds import Covered

REASON_MAX = 1_000
_NAME_MAX = 100
_ID_MAX = 512
_EARLIEST, _LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)


class ReasonField(forms.CharField):
    """The reason for an action in the audit log."""

    def __init__(self, **options: Any) -> None:
        widget = forms.Textarea(attrs={"class": "form-control", "rows": 2})
        super().__init__(max_length=REASON_MAX, widget=widget, **options)


class ReasonForm(forms.Form):
    """A form with only a reason."""

    reason = ReasonField()


def _text(label: str) -> forms.CharField:
    return forms.CharField(
        label=label,
        required=False,
        max_length=_ID_MAX,
        widget=forms.TextInput(attrs={"class": "form-control mono", "autocomplete": "off"}),
    )


def _moment(label: str) -> forms.DateTimeField:
    return forms.DateTimeField(
        label=label,
        required=False,
        widget=forms.DateTimeInput(
            attrs={"class": "form-control", "type": "datetime-local"}, format="%Y-%m-%dT%H:%M"
        ),
    )


class HoldForm(forms.Form):
    """A new hold: name, reason, and the calls it covers. Times are in the user's time zone."""

    name = forms.CharField(
        max_length=_NAME_MAX,
        widget=forms.TextInput(attrs={"class": "form-control", "autocomplete": "off"}),
    )
    reason = ReasonField(
        help_text="Name and reason become an entry of the ledger, which is never removed."
    )
    trace_id = _text("Trace id")
    case_id = _text("Case id")
    tool_name = _text("Tool")
    since = _moment("Started from")
    until = _moment("Started before")

    def clean(self) -> dict[str, Any]:
        """Reject a hold that covers everything, and an invalid range."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        since, until = cleaned.get("since"), cleaned.get("until")
        for name, moment in (("since", since), ("until", until)):
            if moment is not None and not _EARLIEST <= moment <= _LATEST:
                self.add_error(name, "Enter a year from 2000 to 8999.")
        if since is not None and until is not None and until <= since:
            self.add_error("until", "The end must be after the start.")
        if not self.errors and self.covered == Covered():
            raise forms.ValidationError(
                "Select calls: enter a trace, a case, a tool or a time range."
            )
        return cleaned

    @property
    def covered(self) -> Covered:
        """The calls that the hold covers."""
        cleaned = self.cleaned_data
        return Covered(
            trace_id=cleaned["trace_id"] or None,
            case_id=cleaned["case_id"] or None,
            tool_name=cleaned["tool_name"] or None,
            since=cleaned["since"],
            until=cleaned["until"],
        )
