"""Entries of the ledger from the log: what their leaves were made of.

Whatever stands in the log is handed on as it is. An event from which its leaf does not follow,
because somebody altered one of them, goes out with its bytes and without kind or ids: it will not
fit, and whoever verifies finds it. Of a payload that cannot be read nothing goes out, as of one
that was erased: no entry says that it was.
"""

from collections.abc import Iterator

from tooltrail.evidence import EntryLine
from tooltrail.ledger import HASH_LENGTH, NO_INVOCATION

from audit.events.instants import microseconds
from audit.ledger.recompute import Remade, StoredBatch, remake
from audit.log.payload import LogPayloadError

_SALT_MAX = 64
_UNKNOWN = 0


def entries_of(batch: StoredBatch) -> Iterator[tuple[EntryLine, bytes]]:
    """A batch's entries with their events' bytes, in order; erased ones are an index and a leaf."""
    for position, one in enumerate(_remade(batch)):
        index = batch.first_index + position
        if not one.raw and not one.salt:
            yield EntryLine(index, one.leaf), b""
            continue
        line = EntryLine(
            index,
            one.leaf,
            _UNKNOWN,
            received_us=microseconds(batch.received_at),
            length=len(one.raw),
            salt=one.salt[:_SALT_MAX],
        )
        if one.entry is not None:
            line.kind, line.event_id = one.entry.kind, one.entry.event_id
            if one.entry.invocation_id != NO_INVOCATION:
                line.invocation_id = one.entry.invocation_id
        yield line, one.raw


def _remade(batch: StoredBatch) -> list[Remade]:
    try:
        return remake(batch)
    except LogPayloadError:
        leaves = batch.leaves
        whole = range(0, len(leaves) - len(leaves) % HASH_LENGTH, HASH_LENGTH)
        return [Remade(None, leaves[at : at + HASH_LENGTH], b"", b"") for at in whole]
