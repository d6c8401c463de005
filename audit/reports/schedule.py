"""Scheduled reports (daily, weekly, monthly) that the worker makes, and how long reports are kept.

For each kind, the report of the last whole period is due until it exists, so a worker that was
down makes it later. Earlier missed periods are not made up. The database allows one scheduled
report per period.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from uuid import UUID

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
"""How long reports are kept by default."""
LEAST_DAYS, MOST_DAYS = 40, 3_660
"""If `LEAST_DAYS` were shorter than about a month, a just deleted report would be due again."""
SETTLING = timedelta(minutes=15)
"""A report waits this long after its period: calls end, and executors send queued events."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A tenant's settings for reports; `kinds` are from `SCHEDULED`."""

    kinds: Sequence[str] = ()
    time_zone: str = "UTC"
    keep_days: int = KEEP_DAYS

    @property
    def zone(self) -> tzinfo:
        """The zone that decides when days, weeks and months begin."""
        return zone_named(self.time_zone)


def schedule() -> Schedule:
    """The tenant's schedule, or the default one. One statement."""
    stored = read_schedule()
    return Schedule() if stored is None else Schedule(*stored)


def change_schedule(wanted: Schedule) -> None:
    """Set the tenant's schedule. One statement."""
    kinds = [kind for kind in SCHEDULED if kind in wanted.kinds]
    write_schedule(kinds, wanted.time_zone, wanted.keep_days)


def due(now: datetime) -> Mapping[str, date]:
    """The periods whose reports are due, as first days by kind. Two statements."""
    decided = schedule()
    wanted = {kind: last_whole(kind, now - SETTLING, decided.zone) for kind in decided.kinds}
    if not wanted:
        return {}
    there = scheduled_reports(wanted, {day.isoformat() for day in wanted.values()})
    return {kind: day for kind, day in wanted.items() if (kind, day.isoformat()) not in there}


def create_due(kind: str, now: datetime) -> Report | None:
    """Make the due report of this kind. None if none is due, or another worker has made it.

    Runs after `audit.reports.stored.of_one_moment`, in the same scope.
    """
    day = due(now).get(kind)
    if day is None:
        return None
    of = period(kind, day, schedule().zone)
    return create_report(kind, of, now=now, made_by="", made_as="schedule", period=day.isoformat())


def forget_old(now: datetime) -> list[UUID]:
    """Delete reports older than the schedule keeps them. Returns their ids. Two statements."""
    return forget_reports(now - timedelta(days=schedule().keep_days))
