"""Tasks of ledgers: new entries, signatures and witnesses."""

import logging
from uuid import UUID

from django.db import IntegrityError, InterfaceError, OperationalError, connections
from django.utils import timezone
from procrastinate.contrib.django import app

from audit.ledger import actions, keys, signer
from audit.ledger.baseline import enter_baseline
from audit.ledger.hsm import TokenError
from audit.ledger.takeover import NoMemoryError
from audit.ledger.witnesses import bringing
from audit.tasks.once import defer_once, defer_where_due
from config.postgresql.aliases import KEEPER
from config.private_files import PrivateFileError
from tenants.models import Tenant

_log = logging.getLogger(__name__)

_LEDGER_SECONDS = 2.0


# The sixth field is seconds: entries are signed within a minute, even on a busy worker.
@app.periodic(cron="* * * * * */10")
@app.task(name="audit.tasks.keep_ledgers", queue="ledger", queueing_lock="keep_ledgers")
def keep_ledgers(timestamp: int) -> None:
    """For each tenant: add new actions to the ledger, fold new entries, and sign when due."""
    if KEEPER not in connections:
        _log.warning("DATABASE_KEEPER_URL is not set: this worker signs no ledgers")
        return
    for tenant_id in Tenant.objects.order_by("id").values_list("id", flat=True):
        try:
            _keep_ledger(tenant_id)
        except (OperationalError, InterfaceError):
            raise  # the database is down for all tenants
        except Exception:
            _log.exception("ledger of tenant %s: not signed", tenant_id)  # the others are signed


@app.task(name="audit.tasks.keep_ledger", queue="ledger")
def keep_ledger(tenant_id: str) -> None:
    """Continue with one tenant's ledger after many entries arrived at once."""
    _keep_ledger(UUID(tenant_id))


def _keep_ledger(tenant_id: UUID) -> None:
    now = timezone.now()
    try:
        waiting = actions.enter_actions(tenant_id, now) == actions.BATCH
    except IntegrityError:  # indexes of the log are given again: the signer below refuses the log
        _log.exception("ledger of tenant %s: no action was entered", tenant_id)
        waiting = False
    try:
        keys.of_this_machine(now)  # the first key is in the baseline
        enter_baseline(tenant_id, now)
        has_more = signer.keep(tenant_id, now, seconds=_LEDGER_SECONDS)
    except (keys.NoKeyError, NoMemoryError, PrivateFileError, TokenError) as error:
        is_late = signer.note_unsigned(tenant_id, str(error), now)
        if is_late or isinstance(error, PrivateFileError | TokenError):
            _log.error("ledger of tenant %s: not signed: %s", tenant_id, error)
        return
    if has_more or waiting:
        defer_once(keep_ledger, f"ledger {tenant_id}", tenant_id=str(tenant_id))


@app.task(name="audit.tasks.bring_checkpoint", queue="deliveries")
def bring_checkpoint(tenant_id: str, size: int | None = None) -> None:
    """Bring a checkpoint to the tenant's witnesses that are due; without a size, the newest one."""
    bringing.bring(UUID(tenant_id), timezone.now(), size)


# Each witness is asked once an hour (`bringing.EVERY`).
@app.periodic(cron="*/5 * * * *")
@app.task(name="audit.tasks.keep_witnessed", queue="deliveries", queueing_lock="keep_witnessed")
def keep_witnessed(timestamp: int) -> None:
    """Defer a task for each tenant with a witness that is due."""
    defer_where_due(bring_checkpoint, "witnesses", bringing.is_due)
