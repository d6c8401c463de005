"""The filter names of the query language: what each one means, and which values it takes. Pure."""

from dataclasses import dataclass, field
from enum import Enum, auto

from audit.queries.call_filter import OPEN, UNRUN
from tools_registry.annotations import HINTS


class Kind(Enum):
    """How the value of a term is read."""

    TEXT = auto()
    CHOICE = auto()
    DURATION = auto()
    COUNT = auto()
    AMOUNT = auto()
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
            "cost",
            Kind.AMOUNT,
            "Cost",
            "cost of a completed call by the price lists, in their currency; none: no price",
            "cost:>0.01",
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
            " of a tool whose MCP definition said so: read-only, destructive, idempotent,"
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
            name="agent-version",
            kind=Kind.TEXT,
            label="Agent version",
            meaning="version of the agent; if it names none, that of its service",
            example="agent-version:2.1*",
            takes_any=True,
            attribute="agent_version",
        ),
        FilterName(
            "caller",
            Kind.TEXT,
            "Caller",
            "tool whose call made the call; if no call did, the agent",
            "caller:plan_trip",
            takes_any=True,
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
            "service",
            Kind.TEXT,
            "Service",
            "service in which the agent runs",
            "service:shop*",
            takes_any=True,
        ),
        FilterName(
            "environment",
            Kind.TEXT,
            "Environment",
            "where it is deployed",
            "environment:production",
            takes_any=True,
        ),
        FilterName(
            "principal",
            Kind.TEXT,
            "Principal",
            "on whose behalf the call was made: as stored, which is a pseudonym by default",
            "principal:~3fa9c1.*",
            takes_any=True,
        ),
        FilterName(
            name="conversation",
            kind=Kind.TEXT,
            label="Conversation",
            meaning="id of the conversation, which is the id of the run",
            example="conversation:c-7",
            takes_any=True,
            attribute="run",
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
        FilterName(
            "label",
            Kind.TEXT,
            "Label",
            "label of a note about the call, its trace, its violations or its version",
            "label:flaky",
            takes_any=True,
        ),
        FilterName(
            "assignee",
            Kind.TEXT,
            "Assignee",
            "member to whom such a note is assigned",
            "assignee:ada",
            takes_any=True,
        ),
    )
}
"""Every filter name, in the order in which pages offer them."""
