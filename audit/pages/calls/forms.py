"""The form of a payload search."""

from typing import Any

from django import forms

from audit.pages.show.reveal import REASON_MAX_LENGTH as REVEAL_REASON_MAX
from audit.queries.payload_match import MAX_NEEDLE


class PayloadSearchForm(forms.Form):
    """The text to search for in payloads. An auditor must give a reason."""

    text = forms.CharField(min_length=2, max_length=MAX_NEEDLE, strip=False)
    reason = forms.CharField(min_length=3, max_length=REVEAL_REASON_MAX, strip=True)

    def __init__(self, data: Any = None, *, needs_reason: bool) -> None:
        super().__init__(data)
        self.fields["reason"].required = needs_reason
