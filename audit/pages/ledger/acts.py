"""Starting and cancelling checks of the whole ledger, on record. Needs the tenant's scope."""

from django.utils import timezone

from audit.ledger import checks
from audit.models import LedgerCheck
from audit.tasks.requested import check_ledger
from tenants.actions import Actor, name_of, record_action
from tenants.models import Tenant


def begin_check(tenant: Tenant, actor: Actor) -> LedgerCheck | None:
    """Let the worker check the whole ledger; None while another check is under way."""
    check = checks.start_check(name_of(actor), timezone.now())
    if check is not None:
        record_action(tenant, actor, "ledger.check", f"{check.size} entries")
        check_ledger.defer(tenant_id=str(tenant.id), check_id=str(check.id))
    return check


def stop_check(tenant: Tenant, actor: Actor, check: LedgerCheck) -> None:
    """Cancel a check. One that has ended stays as it is."""
    if checks.cancel_check(check.id, timezone.now()):
        record_action(tenant, actor, "ledger.cancel-check", f"{check.size} entries")
