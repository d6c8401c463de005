"""Holds a bundle against what the server acknowledged to an executor.

The SDK keeps the last acknowledgement of a server and key (`tooltrail.spool.acknowledged`): where
in the ledger the events of a request are. A server that cut off the end of its ledger before it was
signed, or stored other events there, contradicts it.
"""

from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID

import msgspec

from tooltrail.evidence.layout import Count, EntryLine, Manifest
from tooltrail.evidence.verdict import Check
from tooltrail.ledger import FormatError
from tooltrail.ledger.lines import shown
from tooltrail.spool.acknowledged import ACKNOWLEDGED

_READ_MAX = 1_000_000
_SIGNED_WITHIN = timedelta(minutes=2)
"""A bundle has what was signed by then: the worker signs within a minute."""


class Acknowledged(msgspec.Struct):
    """The answer to one request, as the SDK kept it."""

    at: datetime
    """When the answer arrived, by the executor's clock."""
    first_index: Count
    size: Count
    """Of the ledger after the request."""
    event_ids: list[UUID]

    @property
    def place(self) -> str:
        """The entries of the request, in words."""
        return f"entries {self.first_index:,} to {self.size - 1:,}"


def read_acknowledged(path: Path) -> Acknowledged:
    """Read the SDK's file, or the one in its folder. Raises FormatError."""
    try:
        with (path / ACKNOWLEDGED if path.is_dir() else path).open("rb") as file:
            read = msgspec.json.decode(file.read(_READ_MAX), type=Acknowledged)
    except OSError as error:
        raise FormatError(f"{path}: {error.strerror or error}") from error
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise FormatError(f"{path} is not what the SDK kept: {error}") from error
    if read.at.tzinfo is None or read.size <= read.first_index:
        raise FormatError(f"{path} is not what the SDK kept")
    return read


class Holding:
    """Compares the entries of a bundle with an acknowledgement while they are read."""

    def __init__(self, acknowledged: Acknowledged) -> None:
        self._acknowledged = acknowledged
        self._missing = set(acknowledged.event_ids)
        self._erased = 0

    def note(self, lines: list[EntryLine]) -> None:
        """Note the next entries of the bundle."""
        one = self._acknowledged
        if not lines or lines[-1].index < one.first_index or lines[0].index >= one.size:
            return
        for line in lines:
            if one.first_index <= line.index < one.size:
                if line.kind is None:
                    self._erased += 1
                elif line.event_id is not None:
                    self._missing.discard(line.event_id)

    def check(self, manifest: Manifest, size: int, check: Check) -> bool:
        """Report what is missing, after the last entry. True if it could be compared.

        `size` is that of the ledger at the bundle's largest checkpoint.
        """
        one = self._acknowledged
        if size < one.size:
            if _instant(manifest.made_at) <= one.at + _SIGNED_WITHIN:
                check.skip(
                    f"the bundle was made before {one.place} had to be signed: request a new one"
                )
                return False
            check.fail(
                f"the server acknowledged {one.place} at {one.at:%Y-%m-%d %H:%M:%S} UTC, but its "
                f"ledger of {manifest.made_at} has {size:,} entries: the end was removed"
            )
        elif not manifest.first_index <= one.first_index < one.size <= manifest.end_index:
            check.skip(
                f"the bundle does not have {one.place}: request a range with"
                f" {one.at:%Y-%m-%d %H:%M} UTC"
            )
            return False
        elif len(self._missing) > self._erased:
            check.fail(
                f"of the {len(one.event_ids):,} events that the server acknowledged as {one.place},"
                f" {len(self._missing):,} are not there"
            )
        return True


def _instant(text: str) -> datetime:
    try:
        instant = datetime.fromisoformat(text)
        if instant.tzinfo is not None:
            return instant
    except ValueError:
        pass
    raise FormatError(f"{shown(text)} is not a valid time")
