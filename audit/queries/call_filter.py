"""The filters of calls: every filter by its name in queries, and a filter as a value.

Pure. `audit.queries.call_query` reads queries, and `audit.queries.call_list` finds the calls.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo
from enum import Enum, auto
from typing import Any, Literal

from tools_registry.annotations import HINTS


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
    model: Text | None = None
    provider: Text | None = None
    user: Text | None = None
    decision: str | None = None
    by: Text | None = None
    others: tuple[Condition, ...] = ()
    """Conditions that are not single terms: NOT, OR and free text."""
    payload: tuple[Condition, ...] = ()
    """Conditions on arguments and outputs, which are only in the log."""
    sees_messages: bool = False
    """Whether free text is also searched in error messages, which quote payloads."""

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


def _instant(moment: Moment | None, now: datetime) -> datetime | None:
    match moment:
        case Ago():
            return now - moment.length
        case Midnight():
            day = now.astimezone(moment.zone).date() - timedelta(days=moment.days_ago)
            return datetime.combine(day, datetime.min.time(), moment.zone).astimezone(UTC)
        case _:
            return moment


class Kind(Enum):
    """How the value of a term is read."""

    TEXT = auto()
    CHOICE = auto()
    DURATION = auto()
    COUNT = auto()
    MOMENT = auto()


@dataclass(frozen=True, slots=True)
class FilterName:
    """A filter name of the query language: its meaning and the values it takes."""

    name: str
    kind: Kind
    label: str
    """The label of its column on pages."""
    meaning: str
    example: str
    choices: dict[str, str] = field(default_factory=dict)
    """The words that may be written, and the value of each."""
    takes_any: bool = False
    """Whether `*` alone is allowed, for any value."""
    attribute: str = ""
    """The member of `CallFilter`, if it has another name."""

    @property
    def field(self) -> str:
        """The member of `CallFilter` that it sets."""
        return self.attribute or self.name

    @property
    def hint(self) -> str:
        """An example of a value."""
        return self.example.partition(":")[2]


UNRUN = ("refused", "awaiting", "approved")
"""States of calls that were decided about and have not run."""
OPEN = ("open", "waiting", "working")
"""States of calls without an end. A query for the first finds all of them."""
_STATES = {"ok": "ok", "failed": "failed", "error": "failed", "cancelled": "cancelled"} | {
    name: name for name in (*OPEN, *UNRUN)
}
_DECISIONS = {
    "rejected-arguments": "rejectedArguments",
    "denied": "denied",
    "awaiting": "awaiting",
    "approved": "approved",
    "cancelled": "cancelled",
    "over-budget": "overBudget",
    "over-rate": "overRate",
}
_CONDITIONS = {
    name: name
    for name in (
        *("running", "overdue", "crashed", "orphan", "conflict", "retry"),
        *("over-time", "over-budget", "unapproved"),
        *HINTS,
    )
}

FILTER_NAMES: dict[str, FilterName] = {
    each.name: each
    for each in (
        FilterName("tool", Kind.TEXT, "Tool", "name of the tool", "tool:search"),
        FilterName("version", Kind.TEXT, "Version", "version of the tool", "version:4"),
        FilterName(
            "state",
            Kind.CHOICE,
            "State",
            "state of the call: ok, failed (or error), cancelled, open; of open ones also waiting"
            " (for input), working; of a call that did not run: refused, awaiting, approved",
            "state:error",
            choices=_STATES,
        ),
        FilterName(
            "error", Kind.TEXT, "Error type", "type of the error", "error:UPSTREAM", takes_any=True
        ),
        FilterName(
            "code",
            Kind.TEXT,
            "Error code",
            "code of the error",
            "code:RATE_LIMITED",
            takes_any=True,
        ),
        FilterName(
            "upstream",
            Kind.COUNT,
            "Upstream status",
            "status that the upstream returned",
            "upstream:>=500",
        ),
        FilterName(
            "violation",
            Kind.TEXT,
            "Violation",
            "code of a violation; * for any",
            "violation:WRONG_TYPE",
            takes_any=True,
        ),
        FilterName(
            "path",
            Kind.TEXT,
            "Violation path",
            "path of a violation; [*] for every index",
            "path:$.items[*].name",
        ),
        FilterName("duration", Kind.DURATION, "Duration", "duration of the call", "duration:>2s"),
        FilterName(
            "tokens", Kind.COUNT, "Tokens", "input and output tokens together", "tokens:>10k"
        ),
        FilterName(
            "cache",
            Kind.CHOICE,
            "Cache",
            "whether the result came from a cache: hit, miss",
            "cache:hit",
            choices={"hit": "hit", "miss": "miss"},
        ),
        FilterName(
            name="is",
            kind=Kind.CHOICE,
            label="Condition",
            meaning="running, overdue, crashed (presumed), orphan (an end without a start),"
            " conflict (start and end disagree), retry (not the first attempt),"
            " over-time (longer than its timeout), over-budget (more tokens than its budget),"
            " unapproved (under a definition that changed and was not approved);"
            " of a tool whose MCP definition says so: read-only, destructive, idempotent,"
            " open-world",
            example="is:overdue",
            choices=_CONDITIONS,
            attribute="condition",
        ),
        FilterName(
            "since",
            Kind.MOMENT,
            "From",
            "started at this time or later; a day begins at 00:00",
            "since:yesterday",
        ),
        FilterName(
            "until",
            Kind.MOMENT,
            "To",
            "started before this time; a day begins at 00:00",
            "until:2026-11-20T10:00",
        ),
        FilterName(
            "trace",
            Kind.TEXT,
            "Trace id",
            "id of the trace; trace:4bf9* matches a prefix",
            "trace:4bf9*",
        ),
        FilterName("run", Kind.TEXT, "Run id", "id of the run", "run:graph_run_1", takes_any=True),
        FilterName("call", Kind.TEXT, "Call id", "hash of tool and arguments", "call:3f2a*"),
        FilterName("case", Kind.TEXT, "Case id", "id of the case", "case:case-7", takes_any=True),
        FilterName(
            "workflow",
            Kind.TEXT,
            "Workflow id",
            "id of the workflow",
            "workflow:triage",
            takes_any=True,
        ),
        FilterName(
            "document",
            Kind.TEXT,
            "Document id",
            "id of the document",
            "document:doc-12",
            takes_any=True,
        ),
        FilterName(
            "collection",
            Kind.TEXT,
            "Collection id",
            "id of the collection",
            "collection:laws",
            takes_any=True,
        ),
        FilterName(
            "ingestion",
            Kind.TEXT,
            "Ingestion run id",
            "id of the ingestion run",
            "ingestion:run-3",
            takes_any=True,
        ),
        FilterName(
            "producer", Kind.TEXT, "Producer", "process that reported the call", "producer:web-1*"
        ),
        FilterName(
            "server",
            Kind.TEXT,
            "MCP server",
            "name and version of the MCP server",
            "server:weather*",
            takes_any=True,
        ),
        FilterName(
            "client",
            Kind.TEXT,
            "MCP client",
            "name and version of the MCP client",
            "client:desk*",
            takes_any=True,
        ),
        FilterName(
            "protocol",
            Kind.TEXT,
            "MCP protocol",
            "version of the protocol",
            "protocol:2026-07-28",
            takes_any=True,
        ),
        FilterName(
            "agent", Kind.TEXT, "Agent", "agent that made the call", "agent:plan*", takes_any=True
        ),
        FilterName(
            "model", Kind.TEXT, "Model", "model of the agent", "model:gpt-5*", takes_any=True
        ),
        FilterName(
            "provider",
            Kind.TEXT,
            "Provider",
            "provider of the model",
            "provider:openai",
            takes_any=True,
        ),
        FilterName(
            "user", Kind.TEXT, "User", "person for whom it was made", "user:u-7", takes_any=True
        ),
        FilterName(
            "decision",
            Kind.CHOICE,
            "Decision",
            f"a decision about the call: {', '.join(_DECISIONS)}",
            "decision:denied",
            choices=_DECISIONS,
        ),
        FilterName(
            "by",
            Kind.TEXT,
            "Decided by",
            "who or what decided: an id, a name, or person, policy, guardrail",
            "by:policy",
            takes_any=True,
        ),
    )
}
"""Every filter name, in the order in which pages offer them."""
