"""How instants are written, the same on every page: in the viewer's zone, or in UTC.

Pure text in, text out. A zone is any `tzinfo`; an instant that is out of its calendar's range
there is written in UTC.
"""

from datetime import UTC, datetime, timedelta, tzinfo

NBSP = "\N{NO-BREAK SPACE}"
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MINUTE = timedelta(minutes=1)


def local(instant: datetime, zone: tzinfo) -> datetime:
    """The instant on the zone's clocks."""
    try:
        return instant.astimezone(zone)
    except OverflowError:  # the first or the last day of all
        return instant.astimezone(UTC)


def exact(instant: datetime, zone: tzinfo) -> str:
    """Day and clock with milliseconds, and how far that is from UTC.

    `2026-11-20 14:02:11.204 UTC+1`; the hour that happens twice in autumn is told apart so.
    """
    there = local(instant, zone)
    return f"{there:%Y-%m-%d} {clock(there)} {offset(there)}"


def to_the_minute(instant: datetime, zone: tzinfo) -> str:
    """`2026-11-20 14:02`."""
    return f"{local(instant, zone):%Y-%m-%d %H:%M}"


def short(instant: datetime, now: datetime, zone: tzinfo) -> str:
    """As much of an instant as narrow places need: the clock, or the day and hour before it.

    `14:02:11.204` on the zone's day of `now`, `20 Nov 14:02:11` in its year, else
    `2025-11-20 14:02`.
    """
    there, today = local(instant, zone), local(now, zone)
    if there.date() == today.date():
        return clock(there)
    if there.year == today.year:
        return f"{short_day(there)} {there:%H:%M:%S}"
    return f"{there:%Y-%m-%d %H:%M}"


def short_day(there: datetime) -> str:
    """The day an instant carries, without its year: `20 Nov`."""
    return f"{there.day}{NBSP}{_MONTHS[there.month - 1]}"


def clock(there: datetime) -> str:
    """The time of day an instant carries, with milliseconds: `14:02:11.204`."""
    return there.time().isoformat("milliseconds")


def offset(there: datetime) -> str:
    """How far an instant's clock is from UTC: `UTC`, `UTC+1`, `UTC+5:45`, `UTC−3:30`."""
    minutes = (there.utcoffset() or timedelta()) // _MINUTE
    if not minutes:
        return "UTC"
    hours, rest = divmod(abs(minutes), 60)
    return f"UTC{'+' if minutes > 0 else '−'}{hours}" + (f":{rest:02}" if rest else "")


def place(zone_name: str) -> str:
    """A zone's name for a column's head: `Kathmandu` of Asia/Kathmandu, `UTC` of Etc/UTC."""
    return zone_name.rpartition("/")[2].replace("_", " ")


def iso(instant: datetime) -> str:
    """RFC 3339 in UTC to the millisecond, for machines: `2026-11-20T14:02:11.204Z`."""
    return _rfc3339(instant, "milliseconds")


def iso_exact(instant: datetime) -> str:
    """RFC 3339 in UTC to the microsecond, where it is one: `2026-11-20T14:02:11.204001Z`."""
    return _rfc3339(instant, "auto")


def _rfc3339(instant: datetime, timespec: str) -> str:
    return instant.astimezone(UTC).isoformat(timespec=timespec).replace("+00:00", "Z")
