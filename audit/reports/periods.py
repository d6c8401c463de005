"""Days, weeks and months in a time zone, and reading and naming a report's range. Pure.

Weeks begin on Monday (ISO 8601). A day has 23 or 25 hours when clocks change.
"""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from audit.queries.time_range import MAX_LENGTH, TimeRange, read
from config.instants import local, offset, short_day

KINDS = {
    "day": "Daily report",
    "week": "Weekly report",
    "month": "Monthly report",
    "range": "Report",
}
"""The kinds of reports, and their titles."""
SCHEDULED = ("day", "week", "month")

_DAY = timedelta(days=1)
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def first_day(kind: str, day: date) -> date:
    """The first day of the day, week or month that contains a day."""
    if kind == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if kind == "month" else day


def next_first_day(kind: str, day: date) -> date:
    """The first day of the next day, week or month."""
    first = first_day(kind, day)
    if kind == "month":
        return (first + timedelta(days=32)).replace(day=1)
    return first + (7 if kind == "week" else 1) * _DAY


def period(kind: str, day: date, zone: tzinfo) -> TimeRange:
    """The day, week or month that contains a day. Raises OverflowError beyond the year 9999."""
    return TimeRange(
        _midnight(first_day(kind, day), zone), _midnight(next_first_day(kind, day), zone), zone
    )


def last_whole(kind: str, now: datetime, zone: tzinfo) -> date:
    """The first day of the last day, week or month that was over at `now`."""
    today = local(now, zone).date()
    return first_day(kind, first_day(kind, today) - _DAY)


def read_period(params: Mapping[str, str], *, now: datetime, zone: tzinfo) -> tuple[str, TimeRange]:
    """The requested kind and range: `kind` day, week or month with a `day` in it, else a range.

    A range has `from` and `to` as in a page's URL (`audit.queries.time_range.read`), or one of its
    lengths as `range`. Raises ValueError saying what is wrong.
    """
    kind = params.get("kind", "") or "range"
    if kind not in KINDS:
        raise ValueError(f"Choose a {', '.join(SCHEDULED)} or range.")
    if kind == "range":
        if not any(params.get(name, "").strip() for name in ("from", "range")):
            raise ValueError("Enter a start time.")
        requested = read(params, now=now, zone=zone)
        if requested.problem:
            raise ValueError(requested.problem)
        of = TimeRange(
            requested.range.start.astimezone(UTC), requested.range.end.astimezone(UTC), zone
        )
    else:
        try:
            day = date.fromisoformat(params.get("day", "").strip()[:10])
            if not 2000 <= day.year <= 8999:
                raise ValueError
        except ValueError as error:
            raise ValueError(f"Enter a day of the {kind}, such as 2026-11-20.") from error
        of = period(kind, day, zone)
    if of.start >= now:
        raise ValueError("The range starts in the future.")
    if of.length > MAX_LENGTH:
        raise ValueError(f"A report covers at most {MAX_LENGTH.days} days.")
    return kind, of


def in_words(kind: str, of: TimeRange) -> str:
    """A report's period in its zone: `Friday, 20 November 2026`, `November 2026`."""
    start, last = local(of.start, of.zone), local(of.end - timedelta(microseconds=1), of.zone)
    if kind == "day":
        return f"{_DAYS[start.weekday()]}, {_long(start)}"
    if kind == "week":
        return f"Week {start.isocalendar().week}: {_span(start, last)}"
    if kind == "month":
        return f"{_MONTHS[start.month - 1]} {start.year}"
    end = local(of.end, of.zone)
    if start.time() == end.time() == time():
        return _long(start) if start.date() == last.date() else _span(start, last)
    return f"{_long(start)}, {start:%H:%M} – {_long(end)}, {end:%H:%M}"


def short_words(kind: str, of: TimeRange) -> str:
    """The period in a short form, for narrow places."""
    start, last = local(of.start, of.zone), local(of.end - timedelta(microseconds=1), of.zone)
    if kind == "month":
        return in_words(kind, of)
    if start.date() == last.date() and kind != "range":
        return f"{_DAYS[start.weekday()][:3]} {short_day(start)} {start.year}"
    end = local(of.end, of.zone)
    if start.time() == end.time() == time():
        week = f"Week {start.isocalendar().week}: " if kind == "week" else ""
        return f"{week}{short_day(start)} – {short_day(last)} {last.year}"
    return f"{start:%Y-%m-%d %H:%M} – {end:%Y-%m-%d %H:%M}"


def zone_words(of: TimeRange) -> str:
    """A report's time zone: `Europe/Berlin, UTC+1`; both offsets if it changes in the range."""
    offsets = list(
        dict.fromkeys(
            offset(local(at, of.zone)) for at in (of.start, of.end - timedelta(microseconds=1))
        )
    )
    name = str(of.zone)
    return name if offsets == [name] else f"{name}, {' to '.join(offsets)}"


def _midnight(day: date, zone: tzinfo) -> datetime:
    """When a day begins, in UTC. If clocks skip midnight, the moment of the skip."""
    return datetime.combine(day, time(), zone).astimezone(UTC)


def _long(there: datetime) -> str:
    return f"{there.day} {_MONTHS[there.month - 1]} {there.year}"


def _span(start: datetime, last: datetime) -> str:
    if (start.year, start.month) == (last.year, last.month):
        return f"{start.day} – {_long(last)}"
    if start.year == last.year:
        return f"{start.day} {_MONTHS[start.month - 1]} – {_long(last)}"
    return f"{_long(start)} – {_long(last)}"
