"""Settings of a tenant over the API, with the forms and functions of their pages."""

from datetime import date, datetime
from typing import Any, Literal

from django.http import HttpRequest
from django.utils import timezone
from pydantic import Field

from audit.events.redaction import Redaction
from audit.models import Archive
from audit.pages.settings.acts import (
    Settings,
    current_settings,
    look_up,
    query_for,
    save_redaction,
    save_settings,
    setting_of,
)
from audit.pages.settings.forms import PersonForm, RedactionForm, TenantForm, try_rules
from audit.pages.show.router import router
from audit.queries.archives import ArchiveStatus, archive_status
from audit.retention.floor import locked_setting
from audit.retention.retention import limits
from tenants.api_acts import Act, Body, acts, checked
from tenants.api_auth import tenant_of
from tenants.api_reads import Answer, reads
from tenants.models import Scope, Tenant, TenantSetting


class ArchiveState(Answer):
    """The archive of sealed days outside the database."""

    state: Literal["stopped", "failing", "behind", "current"]
    entries: int
    """Entries of the ledger."""
    archived: int
    """How many of them are archived, from the first one on."""
    archived_at: datetime | None
    """When the last ones were archived."""
    payload_days: int | None
    """How many days archived payloads can be read; null: forever."""
    failure: str
    """Why the last attempt failed; empty if it did not."""


class TenantSettings(Answer):
    """A tenant's name, time zone and retention."""

    name: str
    time_zone: str
    """IANA name; empty: UTC."""
    payload_days: int | None
    """How many days payloads are kept; null: forever."""
    index_days: int | None
    """How many days calls are kept in the index; null: forever."""
    floor_days: int | None
    """The retention floor: neither of the two can be shorter; null: there is none."""
    payloads_before: datetime | None
    """Payloads of events that arrived before are erased by now, or within an hour."""
    index_before: date | None
    """Calls of earlier UTC days are removed from the index by now, or within an hour."""
    archive: ArchiveState | None = None
    """null: the tenant is not archived."""


class SettingsBody(Body):
    """New settings. A member that is absent does not change."""

    name: str = ""
    time_zone: str = ""
    payload_days: int | None = None
    index_days: int | None = None
    is_sure: bool = False
    """Must be true if the retention becomes shorter: older data is erased within an hour."""


class RedactionRules(Answer):
    """What is removed from events before they are stored."""

    names: list[str]
    """Names of members whose values are removed."""
    patterns: list[str]
    """Regular expressions: a text with a match is removed."""
    otlp: bool
    """Whether the SDK's default rules apply to OpenTelemetry data."""
    clear_principals: bool
    """Whether principals are stored in clear text, and not as pseudonyms."""


class RedactionBody(Body):
    """New rules, instead of all present ones."""

    names: list[str]
    patterns: list[str]
    otlp: bool = True
    clear_principals: bool = False


class RedactionTrial(RedactionBody):
    """Rules, and a sample to try them on. Nothing is stored."""

    sample: str = Field(max_length=100_000)
    """Arguments or an output as JSON, or any text."""


class TriedRedaction(Answer):
    """The sample as it would be stored."""

    stored: str
    removed: int
    """Number of values that were removed."""


class PersonBody(Body):
    """Somebody to look up."""

    person: str
    """Exactly as executors send it."""


class PersonPseudonyms(Answer):
    """What is stored for a person."""

    pseudonyms: list[str]
    """By each key, the newest first."""
    query: str
    """Finds the calls that were made on behalf of the person."""


@reads(router, "/settings", TenantSettings, scope=Scope.ADMIN, tag="administration")
def read_settings(request: HttpRequest) -> dict[str, Any]:
    """Get the tenant's name, time zone and retention."""
    tenant = tenant_of(request)
    return _settings(tenant, setting_of(tenant))


@acts(
    router,
    "PATCH",
    "/settings",
    TenantSettings,
    scope=Scope.ADMIN,
    tag="administration",
    body=SettingsBody,
)
def change_settings(act: Act) -> dict[str, Any]:
    """Change name, time zone or retention. A shorter retention needs `is_sure`, as on the page."""
    body, setting = act.read(SettingsBody), locked_setting(act.tenant)
    current = current_settings(act.tenant, setting)
    given = body.model_dump(exclude_unset=True)
    form = checked(TenantForm({**current._asdict(), **given}, setting=setting))
    wanted = Settings(*(form.cleaned_data[name] for name in Settings._fields))
    save_settings(act.tenant, act.actor, current, wanted)
    act.tenant.refresh_from_db()
    return _settings(act.tenant, setting_of(act.tenant))


@reads(router, "/settings/redaction", RedactionRules, scope=Scope.ADMIN, tag="administration")
def read_redaction(request: HttpRequest) -> dict[str, Any]:
    """Get the rules by which values are removed from events before they are stored."""
    return _rules(setting_of(tenant_of(request)))


@acts(
    router,
    "PUT",
    "/settings/redaction",
    RedactionRules,
    scope=Scope.ADMIN,
    tag="administration",
    body=RedactionBody,
)
def change_redaction(act: Act) -> dict[str, Any]:
    """Replace the rules. All servers apply them within 5 seconds."""
    form = _form(act.read(RedactionBody))
    save_redaction(act.tenant, act.actor, form.cleaned_data)
    return _rules(setting_of(act.tenant))


@acts(
    router,
    "POST",
    "/settings/redaction/try",
    TriedRedaction,
    scope=Scope.ADMIN,
    tag="administration",
    body=RedactionTrial,
)
def try_redaction(act: Act) -> dict[str, Any]:
    """Try rules on a sample. Nothing is stored."""
    body = act.read(RedactionTrial)
    form = _form(body)
    rules = Redaction(form.cleaned_data["names"], form.cleaned_data["patterns"], defaults=body.otlp)
    stored, removed = try_rules(rules, body.sample)
    return {"stored": stored, "removed": removed}


@acts(
    router,
    "POST",
    "/settings/principals/look-up",
    PersonPseudonyms,
    scope=Scope.ADMIN,
    tag="administration",
    body=PersonBody,
)
def look_up_principal(act: Act) -> dict[str, Any]:
    """Get the pseudonyms of a person, and the query for their calls. This is an action."""
    form = checked(PersonForm({"person": act.read(PersonBody).person}))
    pseudonyms = look_up(act.tenant, act.actor, form.cleaned_data["person"])
    return {"pseudonyms": pseudonyms, "query": query_for(pseudonyms)}


def _form(body: RedactionBody) -> RedactionForm:
    return checked(
        RedactionForm(
            {
                "names": "\n".join(body.names),
                "patterns": "\n".join(body.patterns),
                "otlp": body.otlp,
                "clear_principals": body.clear_principals,
            }
        )
    )


def _settings(tenant: Tenant, setting: TenantSetting) -> dict[str, Any]:
    over = limits(setting, timezone.now())
    status = archive_status(timezone.now())
    kept = status.archive
    return {
        **current_settings(tenant, setting)._asdict(),
        "floor_days": setting.floor_days,
        "payloads_before": over.payloads,
        "index_before": over.index,
        "archive": None if kept is None else _archive(status, kept),
    }


def _archive(status: ArchiveStatus, kept: Archive) -> dict[str, Any]:
    return {
        "state": status.state,
        "entries": status.size,
        "archived": kept.next_index,
        "archived_at": status.archived_at,
        "payload_days": kept.payload_days,
        "failure": kept.failure,
    }


def _rules(setting: TenantSetting) -> dict[str, Any]:
    return {
        "names": setting.redact_names,
        "patterns": setting.redact_patterns,
        "otlp": setting.redact_otlp,
        "clear_principals": setting.clear_principals,
    }
