"""Which calls a replay or a drift analysis reads, in requests of the API."""

from typing import Literal

from pydantic import Field

from audit.pages.show.ranges import RangeParams
from audit.queries.time_range import TimeRange
from audit.work.replay import job as replays
from tenants.api_acts import Body

JobName = Literal["waiting", "running", "done", "cancelled", "failed"]


class CallsBody(Body):
    """Which calls are read: the newest of a range."""

    limit: int = Field(10_000, ge=1, le=replays.CALLS_MAX)
    range: str = Field("", examples=["24h"])
    """How far back from now: minutes, hours or days, up to 400 days. Default: 7d."""
    from_: str = Field("", alias="from", examples=["2026-11-20T10:00:00Z"])
    """Instead of `range`: the start, an instant or a day."""
    to: str = ""
    """With `from`: the end, an instant or a day, inclusive. Default: now."""

    def time_range(self) -> TimeRange:
        """The range. Raises like `RangeParams.read_range`."""
        length = self.range or ("" if self.from_ or self.to else "7d")
        params = {"range": length, "from": self.from_, "to": self.to}
        return RangeParams.model_validate(params).read_range()
