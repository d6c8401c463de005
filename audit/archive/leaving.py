"""A tenant leaves: its archive says so, and then the keys of all its payloads are destroyed.

What is locked stays until its lock ends: leaves, stubs and ciphertexts that nobody can read.
"""

import time

from django.db import connections
from django.utils import timezone
from tooltrail.ledger import Kind

from audit.archive.archives import hold_archive
from audit.archive.archiving import run_slice
from audit.archive.layout import ArchiveError
from audit.archive.storage import opened
from audit.ledger import keys, signer
from audit.ledger.actions import enter_all_actions
from audit.ledger.entries import append_entry
from audit.ledger.status import ledger_status
from audit.models import Archive
from audit.queries.archives import find_archive
from config.postgresql.aliases import KEEPER
from tenants.models import Tenant
from tenants.scope import tenant_scope

_WAITS, _WAIT_S = 120, 1.0
_SLICE_S = 5.0


def leave(tenant: Tenant, operator: str) -> None:
    """Declare all payloads of a tenant erased, archive that, and destroy its keys.

    Does nothing for a tenant of which nothing is archived. Can be called again. Opens its own
    scopes. Raises ArchiveError if the ledger is not signed within two minutes, BucketError and
    BoxError.
    """
    with tenant_scope(tenant.id):
        hold_archive(tenant.id)
        archive = find_archive()
        if archive is None or not archive.has_objects:
            _stop(tenant, operator)
            return
    with opened() as storage:
        storage.check()  # before anything is declared
        enter_all_actions(tenant.id)
        size = _declare(tenant, operator)
        _wait_for_signature(tenant, size)
        _archive_up_to(tenant, size)
        with tenant_scope(tenant.id):
            hold_archive(tenant.id)
            _stop(tenant, operator)
            storage.destroy_keys_from(tenant.id, 0, lambda: hold_archive(tenant.id))


def _stop(tenant: Tenant, operator: str) -> None:
    """Let nobody archive the tenant any more. Needs the scope."""
    Archive.objects.for_tenant(tenant.id).update(
        stopped_at=timezone.now(), stopped_by=operator, claim=None, claimed_until=None
    )


def _declare(tenant: Tenant, operator: str) -> int:
    """Add the entry that says what is gone; the size of the ledger with it."""
    with tenant_scope(tenant.id):
        hold_archive(tenant.id)
        index = append_entry(
            tenant.id,
            Kind.ERASURE,
            {
                "ranges": [[0, ledger_status(tenant.id).size]],
                "reason": "the tenant was deleted",
                "actor": operator,
            },
            timezone.now(),
        )
        Archive.objects.for_tenant(tenant.id).update(
            at_once_to=index + 1, stopped_at=None, stopped_by=None, next_attempt_at=timezone.now()
        )
    return index + 1


def _wait_for_signature(tenant: Tenant, size: int) -> None:
    """Sign here, if this machine can; else the worker does within a minute."""
    for _ in range(_WAITS):
        if KEEPER in connections and keys.load():
            while signer.keep(tenant.id, timezone.now(), seconds=_SLICE_S):
                pass
        with tenant_scope(tenant.id):
            if (ledger_status(tenant.id).signed_size or 0) >= size:
                return
        time.sleep(_WAIT_S)
    raise ArchiveError("The ledger is not signed: start the worker, and delete the tenant again.")


def _archive_up_to(tenant: Tenant, size: int) -> None:
    for _ in range(_WAITS):
        while run_slice(tenant.id, timezone.now()):
            pass
        with tenant_scope(tenant.id):
            archive = find_archive()
        assert archive is not None, "only the deletion itself deletes it"
        if archive.next_index >= size:
            return
        if archive.failure:
            raise ArchiveError(archive.failure)
        time.sleep(_WAIT_S)  # a worker archives it
    raise ArchiveError("The end of the ledger is not archived yet. Delete the tenant again.")
