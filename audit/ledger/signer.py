"""Signing what a tenant's tiles add up to, once it is proved to begin with what was signed before.

1. Fold what came (`folding`).
2. Take the machine's lock, and what was signed last out of its file (`signer_state`).
3. Is the log shorter, or does it not begin with that? Then nothing is signed, and the refusal is
   kept for the page, `/metrics` and the log, until the log is as it was or an operator says
   `manage.py ledger new-epoch`.
4. Was the last checkpoint not published? Then publish that note.
5. Sign, write the state, publish, in this order: two different checkpoints of one size cannot be.

Whoever is killed anywhere leaves what the next run takes up at that point.
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
from audit.ledger.standing import Standing, standing
from audit.ledger.tree import StoredTree
from audit.sql.run import run
from config.postgresql.aliases import KEEPER
from tenants.scope import tenant_scope

_log = logging.getLogger(__name__)

SIGN_EVERY = timedelta(seconds=20)
"""A log that grows all the time is signed no more often; looked at more often (`audit.tasks`)."""


class RefusedError(Exception):
    """The log is not what was signed; the message says how."""


def keep(tenant_id: UUID, now: datetime, *, seconds: float) -> bool:
    """Fold for a while and sign what is due; True if there is more to fold.

    Raises NoKeyError and PrivateFileError, when the tiles are made and nothing was signed.
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
    """Sign the tiles as they are, if that is due. Raises RefusedError, NoKeyError,
    PrivateFileError.
    """
    with private_files.locked():
        state = signer_state.load(tenant_id)
        with tenant_scope(tenant_id, using=KEEPER):
            stands = standing(tenant_id, using=KEEPER)
            if _is_quiet(tenant_id, state, stands):
                return
            signing = keys.of_this_machine(now)
            state = _checked(tenant_id, state, stands)
            if (stands.epoch, stands.signed_size) != (state.epoch, state.size):
                _publish(tenant_id, state, signing)
            checkpoint = _due(tenant_id, state, stands, now)
        if checkpoint is not None:
            signers = [SigningKey(state.origin, key.private) for key in signing]
            note = checkpoint.sign(signers).decode()
            state = SignerState(
                state.epoch, state.origin, checkpoint.size, checkpoint.root, note, now
            )
            signer_state.save(tenant_id, state)
            _publish(tenant_id, state, signing)
        if stands.refusal is not None:
            _note(tenant_id, None, now)


def _is_quiet(tenant_id: UUID, state: SignerState | None, stands: Standing) -> bool:
    """Whether nothing has come, and what is published is what was signed."""
    if state is None:
        return stands.size == 0 and stands.epoch is None
    published = (stands.epoch, stands.signed_size, stands.signed_root)
    return (
        stands.refusal is None
        and stands.size == stands.folded == state.size
        and published == (state.epoch, state.size, state.root)
        and state.origin == origin_of(tenant_id, state.epoch)
    )


def _checked(tenant_id: UUID, state: SignerState | None, stands: Standing) -> SignerState:
    """The state, which the log is proved to begin with. Raises RefusedError."""
    if state is None:
        if stands.epoch is not None:
            raise RefusedError(
                "checkpoints were published, but what was signed last is not known here: its file"
                " is lost, or another machine signs"
            )
        state = SignerState(0, origin_of(tenant_id, 0))
    origin = origin_of(tenant_id, state.epoch)
    if state.origin != origin:
        raise RefusedError(f"the log was signed as {state.origin}, and is {origin} by the settings")
    for size, what in ((stands.size, "the log has"), (stands.folded, "its tiles have")):
        if size < state.size:
            raise RefusedError(f"{what} {size:,} entries, and {state.size:,} were signed")
    if stands.size < stands.folded:
        raise RefusedError(
            f"the log has {stands.size:,} entries, and its tiles have {stands.folded:,}"
        )
    tree = StoredTree(tenant_id, stands.folded, using=KEEPER)
    try:
        proof = tree.consistency(state.size)
        verify_consistency(state.size, state.root, tree.size, tree.root(), proof)
    except LedgerError as error:
        raise RefusedError(
            f"the log does not begin with the {state.size:,} entries that were signed ({error})"
        ) from error
    return state


def _due(tenant_id: UUID, state: SignerState, stands: Standing, now: datetime) -> Checkpoint | None:
    if stands.folded == state.size:
        return None
    # A clock that was set back is no reason to wait for it.
    if state.signed_at is not None and timedelta(0) <= now - state.signed_at < SIGN_EVERY:
        return None
    root = StoredTree(tenant_id, stands.folded, using=KEEPER).root()
    return Checkpoint(state.origin, stands.folded, root)


def _publish(tenant_id: UUID, state: SignerState, signing: Sequence[StoredKey]) -> None:
    if not state.note:
        return
    with tenant_scope(tenant_id, using=KEEPER):
        for key in signing:  # a restored database may not know them
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


def _note(tenant_id: UUID, refusal: str | None, now: datetime) -> None:
    with tenant_scope(tenant_id, using=KEEPER):
        is_news = run("note_refusal", using=KEEPER, refusal=refusal, now=now)
    if is_news and refusal is None:
        _log.warning("ledger of tenant %s: signed again", tenant_id)
    elif is_news:
        _log.error("ledger of tenant %s: nothing is signed: %s", tenant_id, refusal)
