"""Continue what another machine signed.

Several machines may have the key. Each has a memory of its own (`signer_state`), and only one at a
time signs a ledger. A machine whose memory is older than the newest published checkpoint remembers
that one, if it is signed with a key of this machine, and the log begins with both.

A machine without a memory of a ledger does not continue it: the memory may be lost, and the
database a restored one. Unless it has joined (`manage.py ledger join`): then an operator has said
that other machines sign, too, and the newest published checkpoint is where it begins.
"""

from uuid import UUID

from tooltrail.ledger import LedgerError, VerifierKey, open_checkpoint, verify_consistency

from audit.ledger import keys, signer_state
from audit.ledger.memory import compare
from audit.ledger.signer_state import SignerState, origin_of
from audit.ledger.status import LedgerStatus
from audit.ledger.tree import StoredTree
from audit.models import LedgerCheckpoint
from config.instance import COMMAND
from config.postgresql.aliases import KEEPER


class RefusedError(Exception):
    """The log differs from what was signed; the message says how."""


class NoMemoryError(Exception):
    """This machine does not remember a signed ledger: another may sign it, or the file is lost."""


def caught_up(tenant_id: UUID, state: SignerState | None, status: LedgerStatus) -> SignerState:
    """This machine's memory or the newest published checkpoint, whichever is later.

    Proves that the log begins with it, and saves it. Needs the scope on KEEPER and the turn to
    sign. Raises RefusedError, NoMemoryError, PrivateFileError.
    """
    if state is None:
        if status.epoch is not None and not signer_state.has_joined():
            raise NoMemoryError(
                "checkpoints are published, but this machine has no record of the last signature:"
                f" its file is lost, or only other machines signed ({COMMAND} ledger join)"
            )
        state = SignerState(0, origin_of(tenant_id, 0))
    newest = None
    if status.epoch is not None and status.signed_size is not None:
        newest = (status.epoch, status.signed_size)
    if newest is None or newest <= (state.epoch, state.size):
        _prove(tenant_id, state, status)
        return state
    if newest[0] == state.epoch:
        _prove(tenant_id, state, status)
    later = _published(tenant_id, state, newest)
    _prove(tenant_id, later, status)
    signer_state.save(tenant_id, later)
    return later


def _published(tenant_id: UUID, state: SignerState, newest: tuple[int, int]) -> SignerState:
    """The memory after a published checkpoint. Raises RefusedError if its note is not ours."""
    epoch, size = newest
    published = LedgerCheckpoint.objects.using(KEEPER).for_tenant(tenant_id)
    row = published.get(epoch=epoch, size=size)
    origin = origin_of(tenant_id, epoch)
    try:
        known = [VerifierKey(origin, key.public()) for key in keys.load()]
        checkpoint = open_checkpoint(row.note.encode(), origin, known)
    except LedgerError as error:
        raise RefusedError(
            f"the published checkpoint of {size:,} entries is not signed with a key of this machine"
            f" ({error})"
        ) from error
    if checkpoint.size != size:
        raise RefusedError(f"the published checkpoint of {size:,} entries has a note of another")
    if epoch > state.epoch:
        proved = compare(tenant_id, state.remembered, size, using=KEEPER).proved
        kept = tuple(each for each in state.remembered if each[0] <= proved)
        state = SignerState(epoch, origin, earlier=kept)
    return state.followed_by(checkpoint, row.note, tuple(map(bytes, row.receipts)), row.signed_at)


def _prove(tenant_id: UUID, state: SignerState, status: LedgerStatus) -> None:
    """Prove that the log begins with this memory. Raises RefusedError."""
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
