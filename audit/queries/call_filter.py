"""A filter of calls as a value: its members and the conditions they may have.

Pure. `audit.queries.filter_names` has the names that queries use for the members,
`audit.queries.call_query` reads queries, and `audit.queries.call_list` finds the calls.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final, Literal

UNRUN = ("refused", "awaiting", "approved")
"""States of calls that have decisions and did not run."""
OPEN = ("open", "waiting", "working")
"""States of calls without an end. A query for the first finds all of them."""
_NO_TERMS = ("others", "payload", "sees_messages")


@dataclass(frozen=True, slots=True)
class Text:
    """A text that a column equals or begins with."""

    value: str
    is_prefix: bool = False

    @property
    def is_anything(self) -> bool:
        """Whether it is `*` alone: any value, as long as there is one."""
        return self.is_prefix and not self.value


@dataclass(frozen=True, slots=True)
class Bounds:
    """A minimum and a maximum, both inclusive. Either may be missing."""

    low: int | None = None
    high: int | None = None


AMOUNT_SCALE = 24
"""Bounds of amounts are in units of the 24th decimal: prices and units have at most 12 each."""
UNPRICED: Final = "none"
"""Instead of bounds of a cost: a completed call without a price."""


@dataclass(frozen=True, slots=True)
class Ago:
    """An instant relative to the time at which the query runs."""

    length: timedelta


@dataclass(frozen=True, slots=True)
class Midnight:
    """The beginning of today or of an earlier day, in the reader's time zone."""

    days_ago: int
    zone: tzinfo = UTC


type Moment = datetime | Ago | Midnight


@dataclass(frozen=True, slots=True)
class Has:
    """A member of `CallFilter` has a value: one term of a query."""

    member: str
    value: Any


@dataclass(frozen=True, slots=True)
class Contains:
    """The tool, error type, error code or error message contains a text, ignoring case of a-z."""

    text: str


@dataclass(frozen=True, slots=True)
class PayloadHas:
    """A place within the arguments or the output has a value."""

    payload: Literal["args", "output"]
    steps: tuple[str | int | None, ...]
    """Names of members and indexes of lists. None means every index."""
    value: Text


@dataclass(frozen=True, slots=True)
class Not:
    """A condition does not hold. A call without the value matches."""

    of: "Condition"


@dataclass(frozen=True, slots=True)
class AllOf:
    """All of these conditions hold."""

    of: tuple["Condition", ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one of these conditions holds."""

    of: tuple["Condition", ...]


type Condition = Has | Contains | PayloadHas | Not | AllOf | AnyOf


def leaves(condition: Condition) -> Iterator[Has | Contains | PayloadHas]:
    """The single conditions that a condition consists of."""
    match condition:
        case Not(of):
            yield from leaves(of)
        case AllOf(of) | AnyOf(of):
            for each in of:
                yield from leaves(each)
        case _:
            yield condition


@dataclass(frozen=True, slots=True)
class CallFilter:
    """Which calls to find. Every member that is set must hold. Durations are microseconds."""

    since: Moment | None = None
    """From this instant on."""
    until: Moment | None = None
    """Before this instant."""
    tool: Text | None = None
    version: Text | None = None
    state: str | None = None
    condition: str | None = None
    error: Text | None = None
    code: Text | None = None
    violation: Text | None = None
    path: Text | None = None
    duration: Bounds | None = None
    tokens: Bounds | None = None
    cost: Bounds | Literal["none"] | None = None
    upstream: Bounds | None = None
    cache: str | None = None
    trace: Text | None = None
    run: Text | None = None
    call: Text | None = None
    ingestion: Text | None = None
    case: Text | None = None
    workflow: Text | None = None
    document: Text | None = None
    collection: Text | None = None
    producer: Text | None = None
    server: Text | None = None
    client: Text | None = None
    protocol: Text | None = None
    agent: Text | None = None
    agent_version: Text | None = None
    caller: Text | None = None
    model: Text | None = None
    provider: Text | None = None
    principal: Text | None = None
    environment: Text | None = None
    service: Text | None = None
    decision: str | None = None
    by: Text | None = None
    label: Text | None = None
    assignee: Text | None = None
    others: tuple[Condition, ...] = ()
    """Conditions that are not single terms: NOT, OR and free text."""
    payload: tuple[Condition, ...] = ()
    """Conditions on arguments and outputs, which are only in the log."""
    sees_messages: bool = False
    """Whether free text is also searched in error messages, which quote payloads."""

    @property
    def terms(self) -> tuple[Has, ...]:
        """The members that are set, as conditions; without `others` and `payload`."""
        return tuple(
            Has(name, value)
            for name in self.__dataclass_fields__
            if name not in _NO_TERMS and (value := getattr(self, name)) is not None
        )

    @property
    def is_about_unrun(self) -> bool:
        """Whether it mentions decisions or a state that only calls have which did not run."""
        mentions = [leaf for one in self.others for leaf in leaves(one)]
        has = [(leaf.member, leaf.value) for leaf in mentions if isinstance(leaf, Has)]
        has += [(name, getattr(self, name)) for name in ("state", "decision", "by")]
        return any(
            value is not None and (name != "state" or value in UNRUN)
            for name, value in has
            if name in ("state", "decision", "by")
        )

    def also(self, member: str, value: Any) -> "CallFilter":
        """The same filter with one more condition on a member, even if it is set already."""
        current = getattr(self, member)
        others = self.others if current in (None, value) else (*self.others, Has(member, current))
        return replace(self, **{member: value, "others": others})

    def from_instant(self, now: datetime) -> datetime | None:
        """`since` as an instant."""
        return _instant(self.since, now)

    def to_instant(self, now: datetime) -> datetime | None:
        """`until` as an instant."""
        return _instant(self.until, now)

    @property
    def is_without_time(self) -> bool:
        """Whether `until` is not later than `since`, whenever the query runs."""
        match self.since, self.until:
            case Ago(since), Ago(until):
                return until >= since
            case Midnight(since), Midnight(until):
                return until >= since
            case datetime() as since, datetime() as until:
                return until <= since
        return False


def _instant(moment: Moment | None, now: datetime) -> datetime | None:
    match moment:
        case Ago():
            return now - moment.length
        case Midnight():
            day = now.astimezone(moment.zone).date() - timedelta(days=moment.days_ago)
            return datetime.combine(day, datetime.min.time(), moment.zone).astimezone(UTC)
        case _:
            return moment
