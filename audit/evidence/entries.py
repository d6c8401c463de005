"""Rebuilds ledger entries from the log: the data that their leaves were computed from.

The contents of the log are passed on as they are. If an event does not match its leaf, because
somebody altered one of them, it goes out with its bytes but without kind and ids. It will not fit,
and the verifier reports it. An unreadable payload goes out empty, like an erased one; the verifier
reports it, because no entry declares it erased.
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
    """A batch's entries with their bytes, in order. Erased ones have only an index and a leaf."""
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
