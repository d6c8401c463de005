"""Finds one entry in an evidence bundle that was verified before."""

import msgspec

from tooltrail.evidence import layout
from tooltrail.evidence.archive import Archive, UnreadableError
from tooltrail.evidence.layout import EntryLine, Manifest


def origin_of(archive: Archive) -> str:
    """The ledger that a bundle claims to be of. Raises UnreadableError."""
    try:
        return msgspec.json.decode(archive.read(layout.MANIFEST), type=Manifest).origin
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise UnreadableError(f"{layout.MANIFEST} cannot be read ({error})") from error


def entry_in(archive: Archive, index: int) -> tuple[bytes, bytes] | None:
    """Leaf and event of an entry, whose event is empty if it was erased; None if it is not there.

    Raises UnreadableError.
    """
    decoder = msgspec.json.Decoder(EntryLine)
    for chunk in range(archive.chunks):
        name = layout.entries_member(chunk)
        try:
            lines = decoder.decode_lines(archive.read(name))
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise UnreadableError(f"{name} cannot be read ({error})") from error
        if not lines or not lines[0].index <= index <= lines[-1].index:
            continue
        at, events = 0, archive.read(layout.events_member(chunk))
        for line in lines:
            if line.index == index:
                return line.leaf, events[at : at + line.length]
            at += line.length + 1 if line.kind is not None else 0
    return None
