"""Saving a tenant's settings, each change with its entry in the audit log.

The pages and the API use these functions. All need the tenant's scope.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from audit.events.redaction import forget_rules
from audit.intake.principals import Pseudonyms
from audit.ledger.witnesses.bringing import bring_soon
from audit.ledger.witnesses.policy import WitnessPolicy
from audit.ledger.witnesses.states import policy_of
from tenants.actions import Actor, record_action
from tenants.models import Tenant, TenantSetting


class Settings(NamedTuple):
    """A tenant's name, time zone and retention; None: data is kept forever."""

    name: str
    time_zone: str
    payload_days: int | None
    index_days: int | None


def setting_of(tenant: Tenant) -> TenantSetting:
    """The stored setting, or one with the defaults."""
    return TenantSetting.objects.filter(tenant=tenant).first() or TenantSetting(tenant=tenant)


def current_settings(tenant: Tenant, setting: TenantSetting) -> Settings:
    """The settings as they are stored."""
    return Settings(tenant.name, tenant.time_zone, setting.payload_days, setting.index_days)


def save_settings(tenant: Tenant, actor: Actor, current: Settings, wanted: Settings) -> None:
    """Save the settings. Equal ones are not recorded."""
    before, after = current._asdict(), wanted._asdict()
    changed = [name for name in after if after[name] != before[name]]
    Tenant.objects.filter(pk=tenant.pk).update(name=wanted.name, time_zone=wanted.time_zone)
    TenantSetting.objects.update_or_create(
        tenant=tenant,
        defaults={name: after[name] for name in ("payload_days", "index_days")},
    )
    if changed:
        record_action(
            tenant,
            actor,
            "tenant.settings",
            wanted.name,
            before={name: before[name] for name in changed},
            after={name: after[name] for name in changed},
            rows=[tenant, TenantSetting(tenant_id=tenant.pk)],
        )


def save_redaction(tenant: Tenant, actor: Actor, rules: dict[str, Any]) -> None:
    """Save what is removed from events: `names`, `patterns`, whether `otlp` has defaults, and
    whether principals stay in clear text (`clear_principals`).

    All servers apply the rules within 5 seconds.
    """
    names, patterns, otlp = rules["names"], rules["patterns"], rules["otlp"]
    clear = rules["clear_principals"]
    TenantSetting.objects.update_or_create(
        tenant=tenant,
        defaults={
            "redact_names": names,
            "redact_patterns": patterns,
            "redact_otlp": otlp,
            "clear_principals": clear,
        },
    )
    forget_rules(tenant.pk)
    record_action(
        tenant,
        actor,
        "tenant.redaction",
        f"{len(names)} names, {len(patterns)} patterns",
        names=names,
        patterns=patterns,
        otlp_defaults=otlp,
        clear_principals=clear,
        rows=[TenantSetting(tenant_id=tenant.pk)],
    )


def save_witnesses(tenant: Tenant, actor: Actor, wanted: WitnessPolicy) -> None:
    """Save the witnesses of the ledger. Equal ones are not recorded."""
    before, after = policy_of(tenant.pk).stored(), wanted.stored()
    TenantSetting.objects.update_or_create(
        tenant=tenant,
        defaults={
            "witnesses": after["witnesses"],
            "witnesses_needed": after["needed"],
            "timestamp_url": after["timestamp_url"],
        },
    )
    if after == before:
        return
    record_action(
        tenant,
        actor,
        "tenant.witnesses",
        f"{wanted.needed} of {len(wanted.witnesses)}",
        before=before,
        after=after,
        rows=[TenantSetting(tenant_id=tenant.pk)],
    )
    bring_soon(tenant.pk)


def look_up(tenant: Tenant, actor: Actor, person: str) -> list[str]:
    """The pseudonyms of a person by each key, the newest first. Looking up is an action.

    The action has the pseudonyms, as the ledger never forgets. Raises PrivateFileError without
    readable keys.
    """
    pseudonyms = Pseudonyms(tenant.pk).all_of(person)
    record_action(tenant, actor, "principal.look_up", pseudonyms[0], pseudonyms=pseudonyms)
    return pseudonyms


def query_for(pseudonyms: Sequence[str]) -> str:
    """The query for the calls that were made on behalf of a person."""
    return " OR ".join(f"principal:{each}" for each in pseudonyms)
