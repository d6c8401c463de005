"""The page and the form of a ledger's witnesses."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from audit.ledger.witnesses.policy import (
    URL_MAX,
    WITNESSES_MAX,
    AuthorityError,
    WitnessError,
    WitnessPolicy,
    can_ask_authorities,
    read_policy,
)
from audit.ledger.witnesses.states import policy_of
from audit.pages.settings.acts import save_witnesses
from tenants.access import TenantRequest, tenant_page
from tenants.models import Role

_LINE_MAX = 2 * URL_MAX


class WitnessesForm(forms.Form):
    """Witnesses, one on each line, and how many of them must sign."""

    witnesses = forms.CharField(
        required=False,
        max_length=2 * WITNESSES_MAX * _LINE_MAX,
        help_text="One per line: its URL, a space, and its public key (name+id+key)."
        " The administrators of the witnesses tell you both.",
        widget=forms.Textarea(
            attrs={"class": "form-control mono", "rows": 5, "spellcheck": "false"}
        ),
    )
    needed = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=WITNESSES_MAX,
        label="How many must sign",
        help_text="The pages say up to which entry so many of them vouch for the ledger.",
        widget=forms.NumberInput(attrs={"class": "form-control", "inputmode": "numeric"}),
    )

    timestamp_url = forms.CharField(
        required=False,
        max_length=URL_MAX,
        label="Time authority",
        help_text="URL of an authority of RFC 3161. Once a day it says that the ledger existed.",
        widget=forms.TextInput(attrs={"class": "form-control mono", "autocomplete": "off"}),
    )

    def clean_timestamp_url(self) -> str:
        """Return the URL. Raises ValidationError without the extra."""
        url: str = self.cleaned_data["timestamp_url"]
        if url and not can_ask_authorities():
            raise forms.ValidationError("The extra timestamp is not installed on this server.")
        return url

    def clean(self) -> dict[str, Any]:
        """Read the policy."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if self.errors:
            return cleaned
        lines = [line.split() for line in cleaned["witnesses"].splitlines() if line.strip()]
        for number, line in enumerate(lines, 1):
            if len(line) != 2:
                self.add_error("witnesses", f"Witness {number}: enter a URL, a space and a key.")
                return cleaned
        try:
            given = [{"url": url, "key": key} for url, key in lines]
            self.policy = read_policy(cleaned["needed"] or 0, given, cleaned["timestamp_url"])
        except AuthorityError as error:
            self.add_error("timestamp_url", str(error))
        except WitnessError as error:
            about_all = error.place is None and len(lines) <= WITNESSES_MAX
            self.add_error("needed" if about_all else "witnesses", str(error))
        return cleaned


def form_of(policy: WitnessPolicy) -> dict[str, Any]:
    """The form's values for a policy."""
    lines = [f"{each.url} {each.key}\n" for each in policy.witnesses]
    return {
        "witnesses": "".join(lines),
        "needed": policy.needed,
        "timestamp_url": policy.timestamp_url,
    }


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page(role=Role.ADMIN)
def witness_settings(request: TenantRequest) -> HttpResponseBase:
    """Show and save the witnesses of the ledger."""
    initial = form_of(policy_of(request.tenant.pk))
    form = WitnessesForm(request.POST or None, initial=initial)
    if form.is_valid():
        save_witnesses(request.tenant, request.user, form.policy)
        messages.success(request, "Saved. The worker asks the witnesses within minutes.")
        return redirect("witness_settings")
    return render(request, "settings/witness_settings.html", {"form": form})
