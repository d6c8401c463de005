"""Instants as nanoseconds since 1970, and as the text that events have."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_ns(moment: datetime) -> int:
    """An instant with offset as nanoseconds since 1970."""
    return (moment - _EPOCH) // _MICROSECOND * 1000


_last_second = (0, b"1970-01-01T00:00:00")  # its first nanosecond since 1970, and its text


def instant_text(ns: int) -> bytes:
    """Write nanoseconds since 1970 as RFC 3339 in UTC, to the microsecond.

    Most calls fall into the same second as the call before, so the text of that second is kept.
    """
    global _last_second
    began, text = _last_second
    rest = ns - began
    if not 0 <= rest < 1_000_000_000:
        second, rest = divmod(ns, 1_000_000_000)
        text = (_EPOCH + timedelta(seconds=second)).isoformat()[:19].encode()
        _last_second = ns - rest, text
    return b"%b.%06d+00:00" % (text, rest // 1000)
