"""Time ranges in the API's URLs: those of the pages, and any other length."""

import re
from datetime import UTC, datetime, timedelta

from django.utils import timezone
from pydantic import Field

from audit.queries import time_range
from audit.queries.latency import ToolFilter
from audit.queries.time_range import MAX_LENGTH, TimeRange
from config.http.problems import ProblemError
from tenants.api_reads import Params

_LENGTH = re.compile(r"(\d{1,6})([mhd])", re.ASCII)
_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}


class RangeParams(Params):
    """The parameters of figures: a time range."""

    range: str = Field("24h", examples=["24h", "15m", "30d"])
    """How far back from now: minutes, hours or days, up to 400 days."""
    from_: str = Field("", alias="from", examples=["2026-11-20T10:00:00Z"])
    """Instead of `range`: the start, an RFC 3339 instant (UTC if it has no offset) or a day."""
    to: str = Field("", examples=["2026-11-21"])
    """With `from`: the end, an instant or a day, inclusive. Default: now."""

    def read_range(self) -> TimeRange:
        """The range that is asked for. Raises ProblemError."""
        now = timezone.now()
        if not (self.from_ or self.to) and self.range not in time_range.LENGTHS:
            return TimeRange(now - read_length(self.range), now, UTC)
        params = {"range": self.range, "from": self.from_, "to": self.to}
        read = time_range.read(params, now=now, zone=UTC)
        if read.problem:
            raise ProblemError("range", read.problem)
        return read.range


class ToolRangeParams(RangeParams):
    """A time range and a tool."""

    tool: str | None = None
    """Only calls of this tool, by its exact name."""
    version: str | None = None
    """Only calls of this version. Empty: calls without a version."""

    def read_filter(self) -> ToolFilter:
        """Which calls are asked for."""
        return ToolFilter.read(given(tool=self.tool, version=self.version))


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
