"""Finds the ledger entries that a bundle must contain."""

from dataclasses import dataclass
from datetime import UTC, timedelta

from audit.queries.time_range import TimeRange
from audit.sql.run import run


class NotSignedError(Exception):
    """The entries are not signed yet, so nothing can be proved. The message says so."""


@dataclass(frozen=True, slots=True)
class LedgerRange:
    """The entries from `first_index` to before `end_index`, signed in the checkpoint of `size`."""

    epoch: int
    origin: str
    size: int
    first_index: int
    end_index: int


def ledger_range_of(of: TimeRange) -> LedgerRange:
    """The signed entries received in a range of time, and those of the calls that started in it.

    Includes the nearest entry on either side that was received outside the range, if there is one.
    They prove that the range has no entries beyond them. Needs the tenant's scope. Reads all of the
    tenant's batches, without their payloads and leaves. Raises NotSignedError.
    """
    epoch, origin, size = newest_checkpoint()
    ((first, before, front, behind),) = run(
        "evidence_range",
        size=size,
        start=of.start,
        end=of.end,
        first_day=of.start.astimezone(UTC).date(),
        last_day=(of.end - timedelta(microseconds=1)).astimezone(UTC).date(),
    )
    if first is None:
        return LedgerRange(epoch, origin, size, max(0, before - 1), min(size, before + 1))
    first_index = 0 if front is None else front - 1
    end_index = size if behind is None else behind + 1
    return LedgerRange(epoch, origin, size, first_index, end_index)


def newest_checkpoint(epoch: int | None = None) -> tuple[int, str, int]:
    """Epoch, origin and size of the newest checkpoint, of one epoch if given.

    Raises NotSignedError.
    """
    rows = run("evidence_head", epoch=epoch)
    if not rows:
        raise NotSignedError(
            "This ledger is not signed yet. The worker signs new entries within a minute."
        )
    return rows[0][0], rows[0][1], rows[0][2]
