"""Rules of alerts as values: what they watch, and when they fire. Pure.

They are also the JSON of the API and of the stored rules.
"""

from datetime import timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    TypeAdapter,
    field_validator,
    model_validator,
)

from audit.queries.call_filter import OPEN, CallFilter, Has, leaves
from audit.queries.call_query import Reader, parse
from tenants.actions import storable_text

QUERY_MAX = 1_000
NAME_MAX = 100
FINE_MAX = 6 * 60
"""Minutes of the longest window that is judged every minute, from the calls themselves."""
WINDOW_MIN, WINDOW_MAX = 5, 30 * 24 * 60
FOR_MAX = 24 * 60
CHANNELS_MAX = 20
REPEAT_MIN, REPEAT_MAX = 15, 7 * 24 * 60
"""Minutes. Each message is an entry of the ledger, so repeats are not more frequent."""
COARSE_MINUTES = 15
"""Longer windows are judged every quarter of an hour: the sums of pages have these quarters."""
_DAY = 24 * 60
_AS_OF_NOW = {"running", "overdue", "crashed"}


class Measure(StrEnum):
    """A figure of the calls that a rule watches."""

    CALLS = "calls"
    FAILED = "failed"
    FAILED_SHARE = "failed_share"
    VIOLATIONS = "violations"
    VIOLATING_SHARE = "violating_share"
    P50 = "p50"
    P95 = "p95"
    P99 = "p99"
    TOKENS = "tokens"
    COST = "cost"
    LOOPED = "looped"
    OPEN = "open"
    OVERDUE = "overdue"

    @property
    def label(self) -> str:
        """Its name on pages."""
        return _LABELS[self]

    @property
    def unit(self) -> Literal["count", "share", "duration", "money"]:
        """Shares are in percent, durations in milliseconds, money in the currency of the lists."""
        if self is Measure.COST:
            return "money"
        if self in (Measure.FAILED_SHARE, Measure.VIOLATING_SHARE):
            return "share"
        return "duration" if self in SHARES_OF_CALLS else "count"

    @property
    def is_level(self) -> bool:
        """Whether it is what is the case at an instant, not what happened in a window."""
        return self in (Measure.OPEN, Measure.OVERDUE)

    @property
    def is_summed(self) -> bool:
        """Whether sums of tools and versions hold it; others are read call by call."""
        return not self.is_level and self is not Measure.LOOPED


_LABELS = {
    Measure.CALLS: "Calls",
    Measure.FAILED: "Failed calls",
    Measure.FAILED_SHARE: "Share of failed calls",
    Measure.VIOLATIONS: "Violations",
    Measure.VIOLATING_SHARE: "Share of calls with violations",
    Measure.P50: "Median duration",
    Measure.P95: "95th percentile of durations",
    Measure.P99: "99th percentile of durations",
    Measure.TOKENS: "Tokens",
    Measure.COST: "Cost",
    Measure.LOOPED: "Identical calls in loops",
    Measure.OPEN: "Open calls",
    Measure.OVERDUE: "Overdue calls",
}
SHARES_OF_CALLS = {Measure.P50: 0.5, Measure.P95: 0.95, Measure.P99: 0.99}
"""The share of calls that take at most this duration."""


class Severity(StrEnum):
    """How grave an alert is."""

    WARNING = "warning"
    ALERT = "alert"


class Comparison(StrEnum):
    """What the thresholds are about."""

    NUMBER = "number"
    DAY_BEFORE = "day_before"
    WEEK_BEFORE = "week_before"

    @property
    def minutes(self) -> int:
        """How far back the window is that the measure is compared with; 0: with none."""
        return {"number": 0, "day_before": _DAY, "week_before": 7 * _DAY}[self.value]


class NoData(StrEnum):
    """What it means that the measure has no value, as there are no calls."""

    NOTHING = "nothing"
    FIRES = "fires"
    KEEPS = "keeps"


class WindowCondition(BaseModel):
    """A measure of calls in a sliding window, and the thresholds at which the rule fires."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    on: Literal["window"] = "window"
    query: str = Field("", max_length=QUERY_MAX, examples=["tool:search"])
    """Which calls, in the query language of the list of calls, without `since` and `until`."""
    measure: Measure
    window_minutes: int = Field(60, ge=WINDOW_MIN, le=WINDOW_MAX)
    """Length of the window. From 6 hours on a multiple of 15."""
    compare_with: Comparison = Comparison.NUMBER
    """With a number, or with the same window a day or a week before. Thresholds are then changes
    in percent: 50 is half as much again, -20 is a fifth less."""
    direction: Literal["above", "below"] = "above"
    warning: float | None = Field(None, allow_inf_nan=False, examples=[5])
    """Threshold of a warning; null for none. Shares are in percent, durations in milliseconds,
    costs in the currency of the price lists."""
    alert: float | None = Field(None, allow_inf_nan=False, examples=[20])
    """Threshold of an alert; null for none."""
    for_minutes: int = Field(0, ge=0, le=FOR_MAX)
    """How long it must hold without interruption before the rule fires."""
    no_data: NoData = NoData.NOTHING
    """What it means if there are no calls: nothing, that it holds, or that all stays as it is."""

    @field_validator("query")
    @classmethod
    def _check_query(cls, text: str) -> str:
        text = storable_text(text.strip())
        if why := why_not_watched(text):
            raise ValueError(why)
        return text

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.warning is None and self.alert is None:
            raise ValueError("Enter a threshold for a warning, for an alert, or for both.")
        if self.warning is not None and self.alert is not None:
            is_ordered = (
                self.warning <= self.alert
                if self.direction == "above"
                else self.warning >= self.alert
            )
            if not is_ordered:
                raise ValueError("The alert threshold must be reached after the warning threshold.")
        if self.step_minutes > 1:
            if self.window_minutes % COARSE_MINUTES:
                raise ValueError(
                    f"A window longer than {FINE_MAX // 60} hours must be a multiple of"
                    f" {COARSE_MINUTES} minutes."
                )
            if not self.measure.is_summed or not is_summed(self.filter):
                raise ValueError(
                    f"A window longer than {FINE_MAX // 60} hours needs a query of only tool and"
                    " version, and no measure of open calls or loops: only these have stored sums."
                )
        return self

    @property
    def filter(self) -> CallFilter:
        """The calls that it watches."""
        return _filter_of(self.query)

    @property
    def step_minutes(self) -> int:
        """Minutes between two instants at which it is judged."""
        return 1 if self.window_minutes <= FINE_MAX else COARSE_MINUTES

    @property
    def step(self) -> timedelta:
        """The same as a length of time."""
        return timedelta(minutes=self.step_minutes)

    @property
    def window(self) -> timedelta:
        """The length of the window."""
        return timedelta(minutes=self.window_minutes)

    def steps(self, minutes: int) -> int:
        """How many steps are in so many minutes, rounded up."""
        return -(-minutes // self.step_minutes)

    def reached(self, value: float) -> Severity | None:
        """The threshold that a value, or a change in percent, is beyond; None: neither."""
        for severity, threshold in ((Severity.ALERT, self.alert), (Severity.WARNING, self.warning)):
            if threshold is not None and (
                value > threshold if self.direction == "above" else value < threshold
            ):
                return severity
        return None

    def threshold(self, severity: Severity) -> float | None:
        """The threshold of a severity."""
        return self.alert if severity is Severity.ALERT else self.warning


class EventKind(StrEnum):
    """The event that a rule watches for."""

    FIRST_VIOLATION = "first_violation"
    NEW_TOOL = "new_tool"
    VERSION_BREAKS = "version_breaks"
    UNAPPROVED_USED = "unapproved_used"
    EXECUTOR_SILENT = "executor_silent"
    GAP_REPORTED = "gap_reported"
    INBOX_WAITING = "inbox_waiting"
    LEDGER_REFUSED = "ledger_refused"
    CHECK_FAILED = "check_failed"
    SIGNING_LATE = "signing_late"
    WITNESS_MISSING = "witness_missing"
    STREAM_BEHIND = "stream_behind"
    ARCHIVE_BEHIND = "archive_behind"
    PAYLOAD_REVEALED = "payload_revealed"
    ERASURE_CONFIRMED = "erasure_confirmed"
    HOLD_RELEASED = "hold_released"
    GLASS_BROKEN = "glass_broken"
    SIGN_INS_FAIL = "sign_ins_fail"
    STORAGE_LOW = "storage_low"

    @property
    def label(self) -> str:
        """What has happened, or is the case, in words."""
        return _EVENTS[self]


_EVENTS = {
    EventKind.FIRST_VIOLATION: "The first violation of a kind",
    EventKind.NEW_TOOL: "A call of a tool name that was never called before",
    EventKind.VERSION_BREAKS: "A published version that breaks callers or consumers",
    EventKind.UNAPPROVED_USED: "Calls under definitions that are not approved",
    EventKind.EXECUTOR_SILENT: "A producer that is silent for 15 minutes",
    EventKind.GAP_REPORTED: "A producer that reports lost events",
    EventKind.INBOX_WAITING: "Rejected events that wait",
    EventKind.LEDGER_REFUSED: "A signer that refuses the ledger",
    EventKind.CHECK_FAILED: "A check of the ledger with findings",
    EventKind.SIGNING_LATE: "Entries that are not signed after 5 minutes",
    EventKind.WITNESS_MISSING: "A witness or time authority that refuses or does not answer",
    EventKind.STREAM_BEHIND: "A stream to a SIEM that fails or is behind",
    EventKind.ARCHIVE_BEHIND: "An archive that fails for an hour or is behind",
    EventKind.PAYLOAD_REVEALED: "A payload that was revealed",
    EventKind.ERASURE_CONFIRMED: "An erasure that was confirmed",
    EventKind.HOLD_RELEASED: "A legal hold that was released",
    EventKind.GLASS_BROKEN: "An admin who got in without the tenant's provider",
    EventKind.SIGN_INS_FAIL: "Sign-ins of a user that fail again and again",
    EventKind.STORAGE_LOW: "A disk or partitions that run out",
}


class EventCondition(BaseModel):
    """Watches for one kind of event, or for a state that lasts. The alert opens immediately."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    on: Literal["event"] = "event"
    event: EventKind
    severity: Severity = Severity.ALERT


Condition = Annotated[WindowCondition | EventCondition, Discriminator("on")]
"""When a rule fires."""
_CONDITION: TypeAdapter[Condition] = TypeAdapter(Condition)


def read_condition(stored: object) -> Condition:
    """The condition of a stored rule as a value."""
    return _CONDITION.validate_python(stored)


def _tagged(condition: object) -> object:
    """A condition without `on` is of a window."""
    if isinstance(condition, dict) and "on" not in condition:
        return {"on": "window", **condition}
    return condition


def _name(text: object) -> object:
    return storable_text(text.strip()) if isinstance(text, str) else text


class Rule(BaseModel):
    """A rule: a condition under a name, and what happens when it fires."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    name: Annotated[str, BeforeValidator(_name), Field(min_length=1, max_length=NAME_MAX)]
    """Names the rule within its tenant."""
    condition: Annotated[Condition, BeforeValidator(_tagged)]
    is_enabled: bool = True
    """A rule that is not enabled is not judged."""
    channels: tuple[str, ...] = Field((), max_length=CHANNELS_MAX, examples=[["on call"]])
    """Names of the channels that its alerts are sent to. None: all channels of the tenant."""
    repeat_minutes: int = Field(0, le=REPEAT_MAX)
    """After how many minutes, 15 to 10,080, another message says that an alert is open, until a
    person acknowledges or resolves it. 0: never."""

    @field_validator("channels")
    @classmethod
    def _check_channels(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(sorted(set(names)))

    @field_validator("repeat_minutes")
    @classmethod
    def _check_repeat(cls, minutes: int) -> int:
        if minutes and minutes < REPEAT_MIN:
            raise ValueError(f"Enter 0, or at least {REPEAT_MIN} minutes.")
        return minutes


# A thousand rules are read from the database each minute.
@lru_cache(maxsize=4_096)
def _filter_of(query: str) -> CallFilter:
    return parse(query).wanted


@lru_cache(maxsize=4_096)
def why_not_watched(text: str) -> str:
    """Why no rule can watch the calls of this query; '' if one can."""
    query = parse(text, Reader())
    if query.problems:
        return query.problems[0].message
    wanted = query.wanted
    conditions = [leaf for one in wanted.others for leaf in leaves(one)]
    states = {one.value for one in conditions if isinstance(one, Has) and one.member == "state"}
    marks = {one.value for one in conditions if isinstance(one, Has) and one.member == "condition"}
    if wanted.since is not None or wanted.until is not None:
        return "Remove since and until: the rule has a window of its own."
    if wanted.is_about_unrun:
        return "A rule cannot watch calls that did not run."
    if (states | {wanted.state}) & set(OPEN):
        return "Remove the state of open calls, and use the measure Open calls."
    if (marks | {wanted.condition}) & _AS_OF_NOW:
        return "Remove is:running, is:overdue and is:crashed, and use a measure of open calls."
    return ""


def is_summed(wanted: CallFilter) -> bool:
    """Whether the sums of tools and versions hold the figures of these calls."""
    return wanted == CallFilter(tool=wanted.tool, version=wanted.version)
