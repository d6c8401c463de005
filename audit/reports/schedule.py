"""Reports that the worker makes by itself: daily, weekly, monthly; and how long any are kept.

Of each kind the last whole period is due until it is there, so a worker that was away makes up
for it; those before it are not made up. A period has one scheduled report: the database says so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo

from audit.reports.periods import SCHEDULED, last_whole, period
from audit.reports.queries import (
    Report,
    forget_reports,
    read_schedule,
    scheduled_reports,
    write_schedule,
)
from audit.reports.stored import create_report
from tenants.zones import zone_named

KEEP_DAYS = 400
"""How long reports are kept where nobody said."""
LEAST_DAYS, MOST_DAYS = 40, 3_660
"""Shorter than a month and a bit, and what was just forgotten would be due again."""
SETTLING = timedelta(minutes=15)
"""So long after a period's end its report is made: calls end, and executors ship what they hold."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """What a tenant's admin decided; `kinds` of `SCHEDULED`."""

    kinds: Sequence[str] = ()
    time_zone: str = "UTC"
    keep_days: int = KEEP_DAYS

    @property
    def zone(self) -> tzinfo:
        """Whose days, weeks and months they are."""
        return zone_named(self.time_zone)


def schedule() -> Schedule:
    """The tenant's, or what holds where there is none. One statement."""
    found = read_schedule()
    return Schedule() if found is None else Schedule(*found)


def change_schedule(wanted: Schedule) -> None:
    """Decide what is made by itself. One statement."""
    kinds = [kind for kind in SCHEDULED if kind in wanted.kinds]
    write_schedule(kinds, wanted.time_zone, wanted.keep_days)


def due(now: datetime) -> Mapping[str, date]:
    """The first days of the periods whose reports are to be made, by kind. Two statements."""
    decided = schedule()
    wanted = {kind: last_whole(kind, now - SETTLING, decided.zone) for kind in decided.kinds}
    if not wanted:
        return {}
    there = scheduled_reports(wanted, {day.isoformat() for day in wanted.values()})
    return {kind: day for kind, day in wanted.items() if (kind, day.isoformat()) not in there}


def create_due(kind: str, now: datetime) -> Report | None:
    """Make the report of this kind that is due; None if none is, or not any more.

    Runs after `audit.reports.stored.of_one_moment`, in the same scope.
    """
    day = due(now).get(kind)
    if day is None:
        return None
    of = period(kind, day, schedule().zone)
    return create_report(kind, of, now=now, made_by="", made_as="schedule", period=day.isoformat())


def forget_old(now: datetime) -> int:
    """Delete the reports whose time is over; how many there were. Two statements."""
    return forget_reports(now - timedelta(days=schedule().keep_days))
