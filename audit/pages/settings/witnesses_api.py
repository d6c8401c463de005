"""The witnesses of a ledger over the API."""

from typing import Any

from django.http import HttpRequest
from pydantic import Field

from audit.ledger.witnesses.policy import URL_MAX, WITNESSES_MAX
from audit.ledger.witnesses.states import policy_of
from audit.pages.settings.acts import save_witnesses
from audit.pages.settings.witnesses import WitnessesForm
from audit.pages.show.router import router
from tenants.api_acts import Act, Body, acts, checked
from tenants.api_auth import tenant_of
from tenants.api_reads import Answer, reads
from tenants.models import Scope


class WitnessSetting(Answer):
    """A witness."""

    url: str
    """The prefix of its URL: `/add-checkpoint` follows (https://c2sp.org/tlog-witness)."""
    key: str
    """Its public key, a verifier key of the type 0x04."""


class WitnessSettings(Answer):
    """The witnesses of the ledger, and how many of them must sign."""

    needed: int
    witnesses: list[WitnessSetting]
    timestamp_url: str
    """Of a time authority (RFC 3161), asked once a day; empty: none."""


class WitnessBody(Body):
    """A witness."""

    url: str = Field(max_length=URL_MAX, pattern=r"^\S+$")
    key: str = Field(max_length=URL_MAX, pattern=r"^\S+$")


class WitnessesBody(Body):
    """New witnesses, instead of all present ones."""

    needed: int = Field(ge=0, le=WITNESSES_MAX)
    """How many of them must sign; 0 without witnesses."""
    witnesses: list[WitnessBody] = Field(max_length=WITNESSES_MAX)
    timestamp_url: str = Field("", max_length=URL_MAX)
    """Of a time authority. Needs the extra `timestamp`."""


@reads(router, "/settings/witnesses", WitnessSettings, scope=Scope.ADMIN, tag="administration")
def read_witnesses(request: HttpRequest) -> dict[str, Any]:
    """Get the witnesses of the ledger. How they stand is in `ledger`."""
    return policy_of(tenant_of(request).pk).stored()


@acts(
    router,
    "PUT",
    "/settings/witnesses",
    WitnessSettings,
    scope=Scope.ADMIN,
    tag="administration",
    body=WitnessesBody,
)
def change_witnesses(act: Act) -> dict[str, Any]:
    """Replace the witnesses of the ledger. The worker asks them within minutes."""
    body = act.read(WitnessesBody)
    lines = "".join(f"{each.url} {each.key}\n" for each in body.witnesses)
    given = {"witnesses": lines, "needed": body.needed, "timestamp_url": body.timestamp_url}
    form = checked(WitnessesForm(given))
    save_witnesses(act.tenant, act.actor, form.policy)
    return policy_of(act.tenant.pk).stored()
