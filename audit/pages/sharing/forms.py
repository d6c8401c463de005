"""The forms of share links."""

from typing import Any

from django import forms

from audit.work.sharing import DAYS_MAX
from tenants.models import Tenant

_LASTS = {1: "1 day", 7: "7 days", 30: "30 days", DAYS_MAX: f"{DAYS_MAX} days"}


class ShareForm(forms.Form):
    """How long a link can be opened, and by whom."""

    days = forms.TypedChoiceField(
        label="Expires after",
        coerce=int,
        initial=7,
        choices=list(_LASTS.items()),
        widget=forms.Select(attrs={"class": "form-select"}),
    )
    is_anonymous = forms.BooleanField(label="Opens without a sign-in", required=False)

    def __init__(self, tenant: Tenant, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        if not tenant.anonymous_links:
            self.fields["is_anonymous"].disabled = True
            self.fields["is_anonymous"].help_text = "An admin can allow this in the settings."
