"""Formats of instants, the same on every page: in the user's time zone, or in UTC.

Pure functions. A zone is any `tzinfo`. An instant that is out of the calendar's range in the zone
is written in UTC.
"""

from datetime import UTC, datetime, timedelta, tzinfo

NBSP = "\N{NO-BREAK SPACE}"
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MINUTE = timedelta(minutes=1)


def local(instant: datetime, zone: tzinfo) -> datetime:
    """Return the instant in the zone."""
    try:
        return instant.astimezone(zone)
    except OverflowError:  # the first or the last day of the calendar
        return instant.astimezone(UTC)


def exact(instant: datetime, zone: tzinfo) -> str:
    """Format day, time with milliseconds, and the offset from UTC.

    `2026-11-20 14:02:11.204 UTC+1`. The offset distinguishes the two equal hours in autumn.
    """
    there = local(instant, zone)
    return f"{there:%Y-%m-%d} {clock(there)} {offset(there)}"


def to_the_minute(instant: datetime, zone: tzinfo) -> str:
    """Format an instant to the minute: `2026-11-20 14:02`."""
    return f"{local(instant, zone):%Y-%m-%d %H:%M}"


def short(instant: datetime, now: datetime, zone: tzinfo) -> str:
    """Format an instant for narrow places.

    `14:02:11.204` if it is on the day of `now` in the zone, `20 Nov 14:02:11` if it is in the same
    year, else `2025-11-20 14:02`.
    """
    there, today = local(instant, zone), local(now, zone)
    if there.date() == today.date():
        return clock(there)
    if there.year == today.year:
        return f"{short_day(there)} {there:%H:%M:%S}"
    return f"{there:%Y-%m-%d %H:%M}"


def short_day(there: datetime) -> str:
    """Format the day of an instant without its year: `20 Nov`."""
    return f"{there.day}{NBSP}{_MONTHS[there.month - 1]}"


def clock(there: datetime) -> str:
    """Format the time of an instant with milliseconds: `14:02:11.204`."""
    return there.time().isoformat("milliseconds")


def offset(there: datetime) -> str:
    """Format the offset of an instant from UTC: `UTC`, `UTC+1`, `UTC+5:45`, `UTC−3:30`."""
    minutes = (there.utcoffset() or timedelta()) // _MINUTE
    if not minutes:
        return "UTC"
    hours, rest = divmod(abs(minutes), 60)
    return f"UTC{'+' if minutes > 0 else '−'}{hours}" + (f":{rest:02}" if rest else "")


def place(zone_name: str) -> str:
    """Return a zone's name for a column's head: Asia/Kathmandu is `Kathmandu`, Etc/UTC is `UTC`."""
    return zone_name.rpartition("/")[2].replace("_", " ")


def iso(instant: datetime) -> str:
    """Format as RFC 3339 in UTC to the millisecond: `2026-11-20T14:02:11.204Z`."""
    return _rfc3339(instant, "milliseconds")


def iso_exact(instant: datetime) -> str:
    """Format as RFC 3339 in UTC, with microseconds if not 0: `2026-11-20T14:02:11.204001Z`."""
    return _rfc3339(instant, "auto")


def _rfc3339(instant: datetime, timespec: str) -> str:
    return instant.astimezone(UTC).isoformat(timespec=timespec).replace("+00:00", "Z")
