"""Which stretch of the ledger a bundle is of."""

from dataclasses import dataclass
from datetime import UTC, timedelta

from audit.queries.time_range import TimeRange
from audit.sql.run import run


class NotSignedError(Exception):
    """There is nothing to prove anything by yet; the message says so."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """From `first_index` up to but without `end_index`, as signed in the checkpoint of `size`."""

    epoch: int
    origin: str
    size: int
    first_index: int
    end_index: int


def stretch_of(of: TimeRange) -> Stretch:
    """The signed entries received in a range of time, and those of the calls that began in it.

    With the nearest on either side that was received outside of the range, if there is: by these
    it can be told that nothing of the range lies beyond them. Needs the tenant's scope; reads all
    of the tenant's batches but for what is large in them. Raises NotSignedError.
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
        return Stretch(epoch, origin, size, max(0, before - 1), min(size, before + 1))
    first_index = 0 if front is None else front - 1
    end_index = size if behind is None else behind + 1
    return Stretch(epoch, origin, size, first_index, end_index)


def newest_checkpoint(epoch: int | None = None) -> tuple[int, str, int]:
    """Epoch, origin and size; of one epoch or the newest. Raises NotSignedError."""
    found = run("evidence_head", epoch=epoch)
    if not found:
        raise NotSignedError(
            "Nothing of this ledger is signed yet. The worker signs within a minute of what comes."
        )
    return found[0][0], found[0][1], found[0][2]
