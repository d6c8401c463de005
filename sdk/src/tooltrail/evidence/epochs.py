"""Ledgers that were restarted: their names, and keys and entries that lead from one to the next.

The log of a later epoch has the same origin with `/<number>` behind it. Its entries continue those
of the epoch before, as far as the entry of kind epoch says (`proved`). What was signed behind that
is gone, or was changed: a restored log goes on with other entries before somebody restarts it. The
same keys sign it, under the new name. An entry of kind key announces a new key.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from tooltrail.ledger import FormatError, Kind, VerifierKey
from tooltrail.ledger.keys import KEY_LENGTH
from tooltrail.ledger.lines import from_base64

_ORIGIN = re.compile(r"(.*/log/[^/]+)(?:/([1-9][0-9]{0,8}))?")


@dataclass(frozen=True, slots=True)
class Epoch:
    """An entry of kind epoch: its index is how many entries the log had when it was restarted."""

    index: int
    number: int
    reason: str
    proved: int
    """How many of the first entries are the signed ones; `index` if the entry does not say so."""
    differs: bool
    """Whether the entry says that signed entries were changed without a restore."""


class _EpochEntry(msgspec.Struct, gc=False):
    epoch: int
    reason: str = ""
    proved: int | None = None
    differs: bool = False


class _KeyEntry(msgspec.Struct, gc=False):
    public_key: str


class Succession:
    """What entries say about epochs and keys."""

    def __init__(self) -> None:
        self._epochs: dict[int, Epoch] = {}
        self._keys: list[tuple[int, bytes]] = []

    def note(self, index: int, kind: int | None, raw: bytes) -> None:
        """Note an entry; entries of other kinds say nothing here."""
        try:
            if kind == Kind.EPOCH:
                entry = msgspec.json.decode(raw, type=_EpochEntry)
                proved = index if entry.proved is None else min(entry.proved, index)
                self._epochs[entry.epoch] = Epoch(
                    index, entry.epoch, entry.reason, proved, entry.differs
                )
            elif kind == Kind.KEY:
                text = msgspec.json.decode(raw, type=_KeyEntry).public_key
                self._keys.append((index, from_base64(text, "an announced key", KEY_LENGTH)))
        except (msgspec.MsgspecError, FormatError, ValueError, RecursionError):
            return  # it is proved like any other entry, and announces nothing

    def begun_after(self, number: int) -> Epoch | None:
        """The entry that ended epoch `number`: the first one of a later epoch; None if unknown."""
        later = [epoch for each, epoch in self._epochs.items() if each > number]
        return min(later, key=lambda epoch: epoch.number, default=None)

    def announced_before(self, size: int) -> list[bytes]:
        """The public keys that the first `size` entries announce."""
        return [public for index, public in self._keys if index < size]


def parse_origin(origin: str) -> tuple[str, int]:
    """The origin of the first epoch, and the number of the epoch. Other names are epoch 0."""
    match = _ORIGIN.fullmatch(origin)
    return (match[1], int(match[2] or 0)) if match else (origin, 0)


def under_name(keys: Iterable[VerifierKey], origin: str) -> list[VerifierKey]:
    """The keys, and those of other epochs of the same ledger under this one's name."""
    base, _ = parse_origin(origin)
    known = list(dict.fromkeys(keys))
    for key in tuple(known):
        named = VerifierKey(origin, key.public)
        if parse_origin(key.name)[0] == base and named not in known:
            known.append(named)
    return known
