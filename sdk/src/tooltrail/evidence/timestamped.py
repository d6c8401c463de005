"""What time authorities say about a bundle: which entries existed at which time."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tooltrail.evidence.verdict import Check
from tooltrail.ledger import LedgerError, parse_note
from tooltrail.ledger.timestamp import OtherAuthorityError, time_of_token

if TYPE_CHECKING:
    from cryptography.x509 import Certificate


def check_times(
    trusted: Sequence["Certificate"], notes: Mapping[int, bytes], end_index: int, check: Check
) -> bool:
    """Check the tokens on a bundle's checkpoints, by size. Returns whether they cover all entries.

    That the checkpoints are states of one ledger is another check.
    """
    times: dict[int, datetime] = {}
    others: str | None = None
    for size, note in sorted(notes.items()):
        try:
            text, signatures = parse_note(note)
            for signature in signatures:
                try:
                    at = time_of_token(text, signature, trusted)
                except OtherAuthorityError as error:
                    others = str(error)
                    continue
                if at is not None:
                    times[size] = min(at, times.get(size, at))
        except LedgerError as error:
            check.fail(f"the checkpoint of {size:,} entries: {error}")
    if not times:
        check.skip(others or "no checkpoint has a token of a time authority")
        return False
    size = next((size for size in times if size >= end_index), max(times))
    seen = f"your authority saw the first {size:,} entries at {_instant(times[size])}"
    if size >= end_index:
        check.message = f"every entry of the bundle existed then: {seen}"
        return True
    check.skip(f"no token covers the entries from {size:,}: {seen}")
    return False


def _instant(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
