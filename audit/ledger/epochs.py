"""Start a new epoch of a tenant's log, after a restore or when the signer's state is lost.

For operators: the signer refuses a log that differs from the one it signed, and only a new epoch
makes it sign again. The log gets a new name (origin) and an entry that names the last signed
checkpoint, and up to where the log is what the signer remembers. So anyone who kept that checkpoint
can see which entries are gone, whether others were changed, and who decided it.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from tooltrail.ledger import Checkpoint, FormatError, Kind, parse_note
from tooltrail.ledger.lines import to_base64

from audit.ledger import signer_state
from audit.ledger.entries import append_entry
from audit.ledger.keys import StoredKey
from audit.ledger.memory import Comparison, compare
from audit.ledger.signer_state import SignerState, origin_of
from audit.ledger.status import LedgerStatus, ledger_status
from audit.models import LedgerCheckpoint
from audit.sql.run import run
from config import private_files
from config.postgresql.aliases import OWNER
from tenants.actions import record_action
from tenants.models import Tenant
from tenants.scope import tenant_scope


class NoEpochError(Exception):
    """There is no epoch that a new one could follow; the message says why."""


def begin_epoch(
    tenant: Tenant,
    reason: str,
    operator: str,
    now: datetime,
    *,
    previous: str | None = None,
    differs: bool = False,
) -> tuple[SignerState, Comparison]:
    """Begin the tenant's next epoch. The worker then makes tiles and signs a checkpoint.

    `previous` is a signed note. It replaces the last note that the signer knows, which may be lost.
    The new epoch is later than that of the note, so that no two logs have the same name. The entry
    says up to where the log is what the signer remembers. Without `differs`, raises NoEpochError
    if entries below that were changed, not only lost. Can be run again after an interruption.
    Raises NoEpochError, PrivateFileError.
    """
    named_epoch = -1 if previous is None else _epoch_of(previous, tenant)
    with private_files.locked():
        state = signer_state.load(tenant.id)
        with tenant_scope(tenant.id):
            run("lock_signing")
            published = ledger_status(tenant.id).epoch
            epoch = max(
                -1 if state is None else state.epoch,
                -1 if published is None else published,
                named_epoch,
            )
            if epoch < 0:
                raise NoEpochError(f"no checkpoint of the ledger of {tenant.slug} was ever signed")
            epoch += 1
            note = previous or (state and state.note) or _last_published(tenant.id)
            named = _named(note)
            remembered = () if state is None else state.remembered
            if previous:
                signed = _parsed(previous)
                remembered = (*remembered, (signed.size, signed.root))
            status = ledger_status(tenant.id)
            compared = compare(tenant.id, remembered, status.size)
            if _is_altered(compared, status) and not differs:
                raise NoEpochError(
                    f"the log's first {compared.proved:,} entries are the signed ones, its first"
                    f" {compared.differs_at:,} are not. This is no restored backup, because its"
                    " checkpoints are not older: somebody changed entries. With --differs the epoch"
                    " begins anyway, and its entry records that"
                )
            kept = tuple(each for each in sorted(set(remembered)) if each[0] <= compared.proved)
            new = SignerState(epoch, origin_of(tenant.id, epoch), earlier=kept)
            record_action(
                tenant, operator, "ledger.epoch", new.origin, reason=reason, previous=named
            )
            append_entry(
                tenant.id,
                Kind.EPOCH,
                {
                    "epoch": epoch,
                    "origin": new.origin,
                    "reason": reason,
                    "by": operator,
                    "previous": named,
                    "proved": compared.proved,
                    "gone": compared.gone,
                    "differs": _is_altered(compared, status),
                },
                now,
            )
        with tenant_scope(tenant.id, using=OWNER):
            run("lock_tiles", using=OWNER)
            run("forget_tiles", using=OWNER)
        signer_state.save(tenant.id, new)
    return new, compared


def announce_keys(
    tenant: Tenant, new: StoredKey, old: Sequence[StoredKey], operator: str, now: datetime
) -> None:
    """Record in the tenant's log that a new key takes over. The old key signs the entry, too."""
    with tenant_scope(tenant.id):
        record_action(tenant, operator, "ledger.key", to_base64(new.public()))
        append_entry(
            tenant.id,
            Kind.KEY,
            {
                "public_key": to_base64(new.public()),
                "by": operator,
                "replaces": [
                    {
                        "public_key": to_base64(key.public()),
                        "signs_until": key.signs_until and key.signs_until.isoformat(),
                    }
                    for key in old
                ],
            },
            now,
        )


def _is_altered(compared: Comparison, status: LedgerStatus) -> bool:
    """Whether entries were changed that the database itself says were signed.

    A restored backup has no checkpoints of the entries that it lacks, and continues with others.
    """
    differs_at = compared.differs_at
    return differs_at is not None and (status.signed_size or 0) >= differs_at


def _last_published(tenant_id: UUID) -> str:
    newest = LedgerCheckpoint.objects.for_tenant(tenant_id).order_by("-epoch", "-size").first()
    return newest.note if newest is not None else ""


def _epoch_of(note: str, tenant: Tenant) -> int:
    """The epoch of a note of the tenant's log, under any host name. Raises NoEpochError."""
    origin = _parsed(note).origin
    match = re.fullmatch(rf".*/log/{tenant.id}(?:/([1-9][0-9]{{0,8}}))?", origin)
    if match is None:
        raise NoEpochError(f"{origin} is not a checkpoint of the log of {tenant.slug}")
    return int(match[1] or 0)


def _parsed(note: str) -> Checkpoint:
    """A note's content. The reader must verify its signatures. Raises NoEpochError."""
    try:
        return Checkpoint.parse(parse_note(note.encode())[0])
    except FormatError as error:
        raise NoEpochError(f"the last checkpoint is not valid: {error}") from error


def _named(note: str) -> dict[str, str | int] | None:
    if not note:
        return None
    checkpoint = _parsed(note)
    return {
        "origin": checkpoint.origin,
        "size": checkpoint.size,
        "root": to_base64(checkpoint.root),
        "note": note,
    }
