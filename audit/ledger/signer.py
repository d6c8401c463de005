"""Sign the root of a tenant's tiles, after proving that the log begins with what was signed before.

1. Fold new leaves (`folding`).
2. Take this machine's lock and the database's, and read the last signed checkpoint from this
   machine's file (`signer_state`).
3. If another machine has signed since, remember its checkpoint (`takeover`).
4. If the log is shorter or does not begin with that checkpoint, sign nothing. The refusal is kept
   for the page, `/metrics` and the server's log, until the log is restored or an operator runs
   `manage.py ledger new-epoch`.
5. If the last checkpoint was not published, publish its note.
6. Sign, write the state, publish, in this order. So there are never two different checkpoints of
   one size.

Steps 2 to 6 are one transaction: whoever loses the database's lock cannot publish. If a run is
killed at any point, the next run continues from there, on this machine or on another.
"""

import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from uuid import UUID

from tooltrail.ledger import Checkpoint

from audit.ledger import keys, signer_state, takeover
from audit.ledger.cose import sign_root
from audit.ledger.folding import LogBrokenError, fold_slice, take_turn
from audit.ledger.keys import StoredKey
from audit.ledger.signer_state import SignerState, origin_of
from audit.ledger.status import LedgerStatus, ledger_status, unsigned_since
from audit.ledger.takeover import RefusedError
from audit.ledger.tree import StoredTree
from audit.sql.run import run
from config import private_files
from config.postgresql.aliases import KEEPER
from tenants.scope import tenant_scope

_log = logging.getLogger(__name__)

SIGN_EVERY = timedelta(seconds=15)
"""Shortest time between two checkpoints of a log.

The worker looks every ten seconds (`audit.tasks`), so it signs at every second look, also if that
comes a little early: another machine follows a killed signer after 20 seconds at most.
"""

UNSIGNED_MAX = timedelta(minutes=3)
"""Entries are signed within a minute. If they wait this long, no machine signs."""


def keep(tenant_id: UUID, now: datetime, *, seconds: float) -> bool:
    """Fold for `seconds`, then sign if that is due. Returns True if there is more to fold.

    Raises NoKeyError, NoMemoryError, PrivateFileError, TokenError. Then the tiles are made, and
    nothing is signed.
    """
    deadline = time.monotonic() + seconds
    has_more = True
    try:
        while has_more and time.monotonic() < deadline:
            has_more = fold_slice(tenant_id).has_more
        sign(tenant_id, now)
    except (LogBrokenError, RefusedError) as error:
        state = None
        with suppress(private_files.PrivateFileError):
            state = signer_state.load(tenant_id)
        _note(tenant_id, str(error), now, state)
        return False
    return has_more


def sign(tenant_id: UUID, now: datetime) -> None:
    """Sign the current tiles, if that is due.

    Raises RefusedError, NoKeyError, NoMemoryError, PrivateFileError, TokenError.
    """
    with private_files.locked(), tenant_scope(tenant_id, using=KEEPER):
        state = signer_state.load(tenant_id)
        if _is_quiet(tenant_id, state, ledger_status(tenant_id, using=KEEPER)):
            return
        signing = keys.of_this_machine(now)
        take_turn("lock_signing")
        keys.refuse_replaced(signing)
        status = ledger_status(tenant_id, using=KEEPER)
        state = takeover.caught_up(tenant_id, state, status)
        if status.refused_at is not None and status.refused_at > (state.epoch, state.size):
            return  # a machine that remembers more refuses
        if (status.epoch, status.signed_size) != (state.epoch, state.size):
            _publish(state, signing)
        checkpoint = _due(tenant_id, state, status, now)
        if checkpoint is not None:
            signers = [key.signer(state.origin) for key in signing]
            note = checkpoint.sign(signers).decode()
            receipts = tuple(sign_root(signer, checkpoint.root, now) for signer in signers)
            state = state.followed_by(checkpoint, note, receipts, now)
            signer_state.save(tenant_id, state)
            _publish(state, signing)
            _log.debug("ledger of tenant %s: signed %d entries", tenant_id, state.size)
        if status.refusal is not None:
            _note(tenant_id, None, now, state)


def _is_quiet(tenant_id: UUID, state: SignerState | None, status: LedgerStatus) -> bool:
    """Whether there is nothing new, and the published checkpoint is the last signed one."""
    if state is None:
        return status.size == 0 and status.epoch is None
    published = (status.epoch, status.signed_size, status.signed_root)
    return (
        status.refusal is None
        and status.size == status.folded == state.size
        and published == (state.epoch, state.size, state.root)
        and state.origin == origin_of(tenant_id, state.epoch)
    )


def _due(
    tenant_id: UUID, state: SignerState, status: LedgerStatus, now: datetime
) -> Checkpoint | None:
    if status.folded == state.size:
        return None
    # If the clock was set back, do not wait until it reaches the old time again.
    if state.signed_at is not None and timedelta(0) <= now - state.signed_at < SIGN_EVERY:
        return None
    root = StoredTree(tenant_id, status.folded, using=KEEPER).root()
    return Checkpoint(state.origin, status.folded, root)


def _publish(state: SignerState, signing: Sequence[StoredKey]) -> None:
    if not state.note:
        return
    for key in signing:  # a restored database may lack them
        keys.publish(key)
    run(
        "publish_checkpoint",
        using=KEEPER,
        epoch=state.epoch,
        size=state.size,
        origin=state.origin,
        root=state.root,
        note=state.note,
        signed_at=state.signed_at,
        receipts=list(state.receipts),
    )


def note_unsigned(tenant_id: UUID, why: str, now: datetime) -> bool:
    """Note as a refusal that no machine signs, if entries have waited for `UNSIGNED_MAX`.

    For a machine without a key or a memory, or with a file or a token that cannot be read: another
    one may sign. Returns whether they have waited so long.
    """
    with tenant_scope(tenant_id):
        status = ledger_status(tenant_id)
        since = None if status.size == status.signed_size else unsigned_since(tenant_id, status)
    if since is None or now - since < UNSIGNED_MAX:
        return False
    _note(tenant_id, f"no machine has signed since {since:%Y-%m-%d %H:%M} UTC: {why}", now)
    return True


def _note(
    tenant_id: UUID, refusal: str | None, now: datetime, state: SignerState | None = None
) -> None:
    with tenant_scope(tenant_id, using=KEEPER):
        is_news = run(
            "note_refusal",
            using=KEEPER,
            refusal=refusal,
            now=now,
            remembered_epoch=0 if state is None else state.epoch,
            remembered_size=0 if state is None else state.size,
        )
    if is_news and refusal is None:
        _log.warning("ledger of tenant %s: signing resumed", tenant_id)
    elif is_news:
        _log.error("ledger of tenant %s: signing refused: %s", tenant_id, refusal)
