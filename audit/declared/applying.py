"""Applies the tenants of files, each in one transaction: all of a tenant is stored, or nothing."""

from collections.abc import Callable, Iterator
from datetime import datetime

from audit.declared.alerting import (
    apply_channels,
    apply_rules,
    apply_windows,
    prune_channels,
)
from audit.declared.boards import apply_boards
from audit.declared.document import DeclaredTenant
from audit.declared.files import SecretError, Secrets, Source
from audit.declared.identity import apply_providers, apply_sso_only
from audit.declared.people import (
    apply_keys,
    apply_members,
    apply_service_accounts,
    apply_views,
)
from audit.declared.pricing import apply_price_lists
from audit.declared.settings import (
    apply_polling_tools,
    apply_redaction,
    apply_reports,
    apply_settings,
    apply_sign_in,
    apply_witnesses,
)
from audit.declared.tools import apply_checks, apply_tools
from audit.declared.work import Options, Outcome, Work
from tenants.models import Tenant, Tombstone, new_id
from tenants.provision import add_tenant
from tenants.scope import tenant_scope


class _NotStoredError(Exception):
    """Ends the transaction of a tenant without storing anything."""


def apply_all(
    sources: list[Source],
    options: Options,
    actor: str,
    now: datetime,
    progress: Callable[[str], Callable[[int, int], None]],
) -> Iterator[Outcome]:
    """Apply each tenant in a transaction of its own, and yield what became of it.

    `progress` makes of a slug what is called with the tools that are done, and how many there are.

    A dry run makes the same changes and takes them back, so it finds the same problems. Tools are
    only planned: the plan names all problems that they can have.
    """
    for source in sources:
        outcome = Outcome(source.tenant.slug)
        place = f"{source.file}: {source.path}"
        tenant, is_new = _tenant(source.tenant)
        if reason := _why_not(source.tenant, tenant, is_new=is_new):
            outcome.problems.append(f"{place}.{reason}")
            yield outcome
            continue
        secrets = Secrets(source.folder)
        file = source.file
        work = Work(actor, now, place, file, secrets, options, outcome, tenant, is_new)
        try:
            with tenant_scope(tenant.pk):
                _apply(work, source.tenant, progress(source.tenant.slug))
                if outcome.problems or options.is_dry:
                    raise _NotStoredError
                secrets.write()
        except _NotStoredError:
            pass
        except SecretError as error:
            outcome.problems.append(f"{place}: {error}")
        if outcome.problems:
            outcome.changes.clear()
            outcome.links.clear()
        yield outcome


def _apply(work: Work, wanted: DeclaredTenant, progress: Callable[[int, int], None]) -> None:
    """Apply the sections in an order in which each can refer to earlier ones."""
    if work.is_new:
        try:
            add_tenant(work.tenant)
        except ValueError as error:
            work.refuse("slug", str(error))
            return
        work.did("create", "tenant", work.tenant.slug)
    apply_settings(work, wanted)
    if wanted.redaction is not None:
        apply_redaction(work, wanted.redaction)
    if wanted.witnesses is not None:
        apply_witnesses(work, wanted.witnesses)
    if wanted.reports is not None:
        apply_reports(work, wanted.reports)
    if wanted.sign_in is not None:
        apply_sign_in(work, wanted.sign_in)
    if wanted.identity_providers is not None:
        apply_providers(work, wanted.identity_providers)
    if wanted.price_lists is not None:
        apply_price_lists(work, wanted.price_lists)
    if wanted.members is not None:
        apply_members(work, wanted.members)
    if wanted.sso_only is not None:
        apply_sso_only(work, wanted.sso_only)
    if wanted.service_accounts is not None:
        apply_service_accounts(work, wanted.service_accounts)
    if wanted.keys is not None:
        apply_keys(work, wanted.keys)
    if wanted.saved_views is not None:
        apply_views(work, wanted.saved_views, wanted.members or [])
    if wanted.boards is not None:
        apply_boards(work, wanted.boards)
    if wanted.channels is not None:
        apply_channels(work, wanted.channels)
    if wanted.alert_rules is not None:
        apply_rules(work, wanted.alert_rules)
    if wanted.channels is not None and work.options.prunes:
        prune_channels(work, wanted.channels)
    if wanted.maintenance_windows is not None:
        apply_windows(work, wanted.maintenance_windows)
    if wanted.polling_tools is not None:
        apply_polling_tools(work, wanted.polling_tools)
    if wanted.tools is not None:
        apply_tools(work, wanted.tools, set(wanted.checks_on_arrival or ()), progress)
    if wanted.checks_on_arrival is not None:
        apply_checks(work, wanted.checks_on_arrival)


def _tenant(wanted: DeclaredTenant) -> tuple[Tenant, bool]:
    """The tenant of this slug, or a new one that is not stored yet."""
    stored = Tenant.objects.filter(slug=wanted.slug).first()
    if stored is not None:
        return stored, False
    name = wanted.name or wanted.slug
    return Tenant(id=wanted.id or new_id(), slug=wanted.slug, name=name), True


def _why_not(wanted: DeclaredTenant, tenant: Tenant, *, is_new: bool) -> str:
    """Why this tenant cannot be applied, with the path; '' if it can."""
    if not is_new and wanted.id not in (None, tenant.pk):
        return f"id: the tenant {wanted.slug} has the id {tenant.pk}"
    if Tombstone.objects.filter(pk=tenant.pk).exists():
        return "id: the tenant of this id was deleted" if is_new else "slug: is being deleted"
    if is_new and (other := Tenant.objects.filter(pk=tenant.pk).first()) is not None:
        return f"id: is the id of the tenant {other.slug}"
    return ""
