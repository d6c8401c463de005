"""Time ranges in the API's URLs: those of the pages, and any other length."""

import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from django.utils import timezone
from pydantic import Field

from audit.queries import time_range
from audit.queries.latency import ToolFilter
from audit.queries.time_range import MAX_LENGTH, TimeRange
from config.http.problems import ProblemError
from tenants.api_reads import ListParams, Params

_LENGTH = re.compile(r"(\d{1,6})([mhd])", re.ASCII)
_DEFAULT = timedelta(hours=24)
_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}


_FROM = Field("", alias="from", examples=["2026-11-20T10:00:00Z"])
_TO = Field("", examples=["2026-11-21"])


class Span(NamedTuple):
    """From an instant on, and before another. None: without that bound."""

    since: datetime | None = None
    until: datetime | None = None


class RangeParams(Params):
    """The parameters of figures: a time range."""

    range: str = Field("", examples=["24h", "15m", "30d"])
    """How far back from now: minutes, hours or days, up to 400 days. Default: 24h."""
    from_: str = _FROM
    """Instead of `range`: the start, an RFC 3339 instant (UTC if it has no offset) or a day."""
    to: str = _TO
    """With `from`: the end, an instant or a day, inclusive. Default: now."""

    def read_range(self) -> TimeRange:
        """The requested range. Raises ProblemError."""
        now = timezone.now()
        return _read(self, now) or TimeRange(now - _DEFAULT, now, UTC)


class ListRangeParams(ListParams):
    """The parameters of a list whose rows have a time: a page, and a range."""

    range: str = Field("", examples=["24h", "30d"])
    """How far back from now: minutes, hours or days, up to 400 days. Default: any time."""
    from_: str = _FROM
    """Instead of `range`: the start, an RFC 3339 instant (UTC if it has no offset) or a day."""
    to: str = _TO
    """With `from`: the end, an instant or a day, inclusive. Default: now."""

    def read_span(self) -> Span:
        """The requested range. Raises ProblemError."""
        of = _read(self, timezone.now())
        if of is None:
            return Span()
        # With `range`, a row of another clock that is a little ahead is not hidden.
        return Span(of.start, of.end if self.from_ else None)


class ToolRangeParams(RangeParams):
    """A time range and a tool."""

    tool: str | None = None
    """Only calls of this tool, by its exact name."""
    version: str | None = None
    """Only calls of this version. Empty: calls without a version."""

    def read_filter(self) -> ToolFilter:
        """The filter of calls."""
        return ToolFilter.read(given(tool=self.tool, version=self.version))


def _read(params: RangeParams | ListRangeParams, now: datetime) -> TimeRange | None:
    """The range in these parameters; None without one. Raises ProblemError."""
    if not (params.from_ or params.to):
        return TimeRange(now - read_length(params.range), now, UTC) if params.range else None
    if params.range:
        raise ProblemError("range", "Send either range, or from and to.", parameter="range")
    read = time_range.read({"from": params.from_, "to": params.to}, now=now, zone=UTC)
    if read.problem:
        raise ProblemError("range", read.problem)
    return read.range


def read_length(text: str) -> timedelta:
    """A length such as `24h`. Raises ProblemError."""
    read = _LENGTH.fullmatch(text)
    if read is None or not timedelta(0) < (length := int(read[1]) * _UNITS[read[2]]) <= MAX_LENGTH:
        offered = f"such as 15m, 24h or 30d, up to {MAX_LENGTH.days}d"
        raise ProblemError("range", f"range must be minutes, hours or days, {offered}.")
    return length


def since(text: str, now: datetime) -> datetime | None:
    """The instant so far back from now, None for an empty text. Raises ProblemError."""
    return now - read_length(text) if text else None


def given(**params: str | None) -> dict[str, str]:
    """Those parameters that were sent."""
    return {name: value for name, value in params.items() if value is not None}


def bounds(of: TimeRange) -> dict[str, datetime]:
    """The range as an answer begins with it."""
    return {"from": of.start.astimezone(UTC), "to": of.end.astimezone(UTC)}
