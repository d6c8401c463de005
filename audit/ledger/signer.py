"""Sign the root of a tenant's tiles, after proving that the log begins with what was signed before.

1. Fold new leaves (`folding`).
2. Take the machine's lock and read the last signed checkpoint from its file (`signer_state`).
3. If the log is shorter or does not begin with that checkpoint, sign nothing. The refusal is kept
   for the page, `/metrics` and the server's log, until the log is restored or an operator runs
   `manage.py ledger new-epoch`.
4. If the last checkpoint was not published, publish its note.
5. Sign, write the state, publish, in this order. So there are never two different checkpoints of
   one size.

If a run is killed at any point, the next run continues from there.
"""

import logging
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from tooltrail.ledger import Checkpoint, LedgerError, SigningKey, verify_consistency

from audit.ledger import keys, private_files, signer_state
from audit.ledger.folding import LogBrokenError, fold_slice
from audit.ledger.keys import StoredKey
from audit.ledger.signer_state import SignerState, origin_of
from audit.ledger.status import LedgerStatus, ledger_status, unsigned_since
from audit.ledger.tree import StoredTree
from audit.sql.run import run
from config.postgresql.aliases import KEEPER
from tenants.scope import tenant_scope

_log = logging.getLogger(__name__)

SIGN_EVERY = timedelta(seconds=20)
"""Shortest time between two checkpoints of a log. It is checked more often (`audit.tasks`)."""

UNSIGNED_MAX = timedelta(minutes=3)
"""Entries are signed within a minute. If they wait this long, no machine signs."""


class RefusedError(Exception):
    """The log differs from what was signed; the message says how."""


def keep(tenant_id: UUID, now: datetime, *, seconds: float) -> bool:
    """Fold for `seconds`, then sign if that is due. Returns True if there is more to fold.

    Raises NoKeyError, PrivateFileError. In both cases the tiles are made, but nothing is signed.
    """
    deadline = time.monotonic() + seconds
    has_more = True
    try:
        while has_more and time.monotonic() < deadline:
            has_more = fold_slice(tenant_id).has_more
        sign(tenant_id, now)
    except (LogBrokenError, RefusedError) as error:
        _note(tenant_id, str(error), now)
        return False
    return has_more


def sign(tenant_id: UUID, now: datetime) -> None:
    """Sign the current tiles, if that is due.

    Raises RefusedError, NoKeyError, PrivateFileError.
    """
    with private_files.locked():
        state = signer_state.load(tenant_id)
        with tenant_scope(tenant_id, using=KEEPER):
            status = ledger_status(tenant_id, using=KEEPER)
            if _is_quiet(tenant_id, state, status):
                return
            signing = keys.of_this_machine(now)
            state = _checked(tenant_id, state, status)
            if (status.epoch, status.signed_size) != (state.epoch, state.size):
                _publish(tenant_id, state, signing)
            checkpoint = _due(tenant_id, state, status, now)
        if checkpoint is not None:
            signers = [SigningKey(state.origin, key.private) for key in signing]
            note = checkpoint.sign(signers).decode()
            state = SignerState(
                epoch=state.epoch,
                origin=state.origin,
                size=checkpoint.size,
                root=checkpoint.root,
                note=note,
                signed_at=now,
                earlier=signer_state.thinned(state.remembered),
            )
            signer_state.save(tenant_id, state)
            _publish(tenant_id, state, signing)
        if status.refusal is not None:
            _note(tenant_id, None, now)


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


def _checked(tenant_id: UUID, state: SignerState | None, status: LedgerStatus) -> SignerState:
    """The state, after proving that the log begins with it. Raises RefusedError."""
    if state is None:
        if status.epoch is not None:
            raise RefusedError(
                "checkpoints are published, but this machine has no record of the last signature:"
                " its file is lost, or another machine signs"
            )
        state = SignerState(0, origin_of(tenant_id, 0))
    origin = origin_of(tenant_id, state.epoch)
    if state.origin != origin:
        raise RefusedError(
            f"the log was signed as {state.origin}, but the settings name it {origin}"
        )
    for size, what in ((status.size, "the log has"), (status.folded, "its tiles have")):
        if size < state.size:
            raise RefusedError(f"{what} {size:,} entries, but {state.size:,} were signed")
    if status.size < status.folded:
        raise RefusedError(
            f"the log has {status.size:,} entries, but its tiles have {status.folded:,}"
        )
    tree = StoredTree(tenant_id, status.folded, using=KEEPER)
    try:
        proof = tree.consistency(state.size)
        verify_consistency(state.size, state.root, tree.size, tree.root(), proof)
    except LedgerError as error:
        raise RefusedError(
            f"the log does not begin with the {state.size:,} signed entries ({error})"
        ) from error
    return state


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


def _publish(tenant_id: UUID, state: SignerState, signing: Sequence[StoredKey]) -> None:
    if not state.note:
        return
    with tenant_scope(tenant_id, using=KEEPER):
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
        )


def note_unsigned(tenant_id: UUID, why: str, now: datetime) -> bool:
    """Note as a refusal that no machine signs, if entries have waited for `UNSIGNED_MAX`.

    For a machine without a key, or with a file that cannot be read: another one may sign. Returns
    whether they have waited so long.
    """
    with tenant_scope(tenant_id):
        status = ledger_status(tenant_id)
        since = None if status.size == status.signed_size else unsigned_since(tenant_id, status)
    if since is None or now - since < UNSIGNED_MAX:
        return False
    _note(tenant_id, f"no machine has signed since {since:%Y-%m-%d %H:%M} UTC: {why}", now)
    return True


def _note(tenant_id: UUID, refusal: str | None, now: datetime) -> None:
    with tenant_scope(tenant_id, using=KEEPER):
        is_news = run("note_refusal", using=KEEPER, refusal=refusal, now=now)
    if is_news and refusal is None:
        _log.warning("ledger of tenant %s: signing resumed", tenant_id)
    elif is_news:
        _log.error("ledger of tenant %s: signing refused: %s", tenant_id, refusal)
