"""The views of `tooltrail query`: the request of each, and the layout of its answer.

The documents are the API's (`/api/v1/openapi.json`). A missing member is shown as empty.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tooltrail.cli import facts
from tooltrail.cli.tables import Column
from tooltrail.cli.values import Row, instant, milliseconds, share, text, why


@dataclass(frozen=True)
class View:
    """One request, and how its answer is laid out."""

    help: str
    path: str
    rows: str = ""
    """The member that holds the rows; '' if the document has none."""
    columns: tuple[Column, ...] = ()
    is_paged: bool = False
    options: tuple[str, ...] = ()
    facts: Callable[[Row], Iterator[str]] | None = None
    """Makes the lines above the rows, for a document that has more than rows."""
    arguments: dict[str, str] = field(default_factory=dict)
    """Positional arguments, each with its help."""


def _column(head: str, of: Callable[[Row], str] | str, **more: Any) -> Column:
    return Column(head, text(of) if isinstance(of, str) else of, **more)


_STARTED = _column("STARTED (UTC)", instant("started_at"), goes=2)
_TOOL = _column("TOOL", "tool_name", is_elastic=True)
_VERSION = _column("VERSION", "tool_version", is_elastic=True, goes=3)
_STATE = _column("STATE", "state")
_TOOK = _column("DURATION", milliseconds("duration_ms"), is_right=True)
_WHY = _column("REASON", why, is_elastic=True, goes=1)
_ID = _column("CALL", "invocation_id")
_TRACE = _column("TRACE", "trace_id", is_elastic=True, goes=4)
_TOKENS = (
    _column("TOKENS IN", "prompt_tokens", is_right=True, goes=2),
    _column("TOKENS OUT", "completion_tokens", is_right=True, goes=2),
)


def _number(head: str, name: str, goes: int = 0) -> Column:
    return _column(head, name, is_right=True, goes=goes)


OPTIONS: dict[str, dict[str, Any]] = {
    "range": {"help": "how far back: 15m, 24h, 30d"},
    "from": {"help": "instead of --range: the start, an instant or a day, UTC"},
    "to": {"help": "with --from: the end (now)"},
    "tool": {"help": "only this tool"},
    "version": {"help": "only this version of the tool"},
    "code": {"help": "only this code"},
    "path": {"help": "only this path, with [*] for indexes"},
    "outcome": {"help": "only this guard outcome"},
    "max_calls": {"help": "maximum number of calls read, up to 400000 (60000)", "type": int},
    "rows": {"help": "single violations instead of kinds", "action": "store_true"},
    "state": {"help": "only this state"},
    "actor": {"help": "only actions of this actor, by name"},
    "verb": {"help": "only this verb, such as key.create; ends with a dot: all with this prefix"},
    "subject": {"help": "only subjects that contain this text"},
    "trace": {"help": "prefix of the trace id"},
    "kind": {"help": "open, running, overdue, crashed or orphan"},
    "day": {"help": "the UTC day the call started, if its id was used on several days"},
}
_RANGE = ("range", "from", "to")
_BY_TOOL = (*_RANGE, "tool", "version")
_TERMS = {"q": "query terms, such as tool:search state:error"}

VIEWS: dict[str, View] = {
    "summary": View("Show totals of a range.", "summary", facts=facts.summary, options=_RANGE),
    "traces": View(
        "List traces, newest first.",
        "traces",
        "traces",
        (
            _column("STARTED (UTC)", instant("first_started_at"), goes=2),
            _column("TRACE", "trace_id", is_elastic=True),
            _number("CALLS", "calls_started"),
            _number("FAILED", "calls_failed"),
            _number("OPEN", "calls_open", goes=3),
            _number("VIOLATIONS", "violations", goes=1),
            _TOOK,
            _column(
                "REASON",
                lambda row: (
                    f"{row['reason']['tool_name']} {why(row['reason'])}".strip()
                    if row["reason"]
                    else ""
                ),
                is_elastic=True,
                goes=1,
            ),
        ),
        is_paged=True,
        options=("state", "trace", "range"),
    ),
    "trace": View(
        "Show a trace and its calls.",
        "traces/{id}",
        "calls",
        (_STARTED, _STATE, _TOOL, _TOOK, _WHY, _ID),
        facts=facts.trace,
        arguments={"id": "the trace id"},
    ),
    "calls": View(
        "List calls, newest first.",
        "calls",
        "calls",
        (_STARTED, _STATE, _TOOL, _VERSION, _TOOK, _WHY, _TRACE, _ID),
        is_paged=True,
        arguments=_TERMS,
    ),
    "call": View(
        "Show a call with its arguments and output.",
        "calls/{id}",
        facts=facts.call,
        options=("day",),
        arguments={"id": "the call's invocation id"},
    ),
    "violations": View(
        "List schema violations by tool, version, path and code.",
        "violations",
        "violations",
        (
            _TOOL,
            _VERSION,
            _column("PATH", "path_pattern", is_elastic=True),
            _column("CODE", "code"),
            _number("VIOLATIONS", "violations"),
            _number("CALLS", "calls", goes=2),
            _column("% OF CALLS", share, is_right=True, goes=2),
            _column("LAST (UTC)", instant("last_at"), goes=1),
            _column("NEW SINCE", "new_since", goes=4),
        ),
        options=(*_BY_TOOL, "code", "path", "outcome", "rows"),
        facts=facts.total,
    ),
    "latency": View(
        "List durations by tool and version.",
        "latency",
        "versions",
        (
            _TOOL,
            _VERSION,
            _number("CALLS", "calls"),
            _number("FAILED", "failed"),
            *(
                _column(name.upper(), milliseconds(f"{name}milliseconds"), is_right=True)
                for name in ("p50", "p95", "p99")
            ),
            *_TOKENS,
        ),
        options=_BY_TOOL,
        facts=facts.total,
    ),
    "tokens": View(
        "List tokens by tool and version, most tokens first.",
        "tokens",
        "versions",
        (
            _TOOL,
            _VERSION,
            _number("CALLS", "calls"),
            *_TOKENS,
            _number("TOTAL", "tokens"),
            _number("CACHE HITS", "cache_hits", goes=3),
        ),
        options=_BY_TOOL,
        facts=facts.total,
    ),
    "repeats": View(
        "List identical calls: loops in one trace, and repeats in any.",
        "repeats",
        "listed",
        (
            _column("KIND", "kind"),
            _TOOL,
            _number("CALLS", "calls"),
            _number("TRACES", "traces", goes=2),
            _column("WASTED", milliseconds("wasted_ms"), is_right=True),
            _number("TOKENS", "wasted_tokens", goes=3),
            _TRACE,
            _column("CALL ID", "call_id", is_elastic=True, goes=1),
        ),
        options=(*_RANGE, "tool", "max_calls"),
        facts=facts.repeats,
    ),
    "open": View(
        "List open calls, newest first.",
        "open",
        "calls",
        (
            _STARTED,
            _column("STATUS", "condition"),
            _TOOL,
            _column("OVERDUE BY", milliseconds("overdue_ms"), is_right=True, goes=1),
            _column("PRODUCER", "producer_id", is_elastic=True, goes=3),
            _TRACE,
            _ID,
        ),
        is_paged=True,
        options=("kind",),
        facts=facts.tally,
        arguments=_TERMS,
    ),
    "producers": View(
        "List producers, most recent first, with their missing events.",
        "producers",
        "producers",
        (
            _column("LAST SEEN (UTC)", instant("last_heard_at")),
            _column("PRODUCER", "producer_id", is_elastic=True),
            _number("MISSING", "missing"),
            _number("DROPPED", "given_up"),
            _column("SILENT", "is_silent"),
        ),
        is_paged=True,
        options=_RANGE,
        facts=facts.producers,
    ),
    "actions": View(
        "List the audit log, newest first.",
        "actions",
        "actions",
        (
            _column("TIME (UTC)", instant("at")),
            _column("ACTOR", "actor", is_elastic=True),
            _column("ACTION", "verb"),
            _column("SUBJECT", "subject", is_elastic=True, goes=1),
            _number("ENTRY", "ledger_index", goes=2),
        ),
        is_paged=True,
        options=("actor", "verb", "subject", "range"),
    ),
    "inbox": View(
        "List rejected events, newest first.",
        "inbox",
        "lines",
        (
            _column("RECEIVED (UTC)", instant("received_at")),
            _column("CODE", "code"),
            _column("RESOLUTION", "resolution", goes=3),
            _column("REASON", "message", is_elastic=True),
            _column("EXCERPT", "excerpt", is_elastic=True, goes=2),
            _column("ID", "id", goes=1),
        ),
        is_paged=True,
        options=("state", "code", "range"),
    ),
    "tools": View(
        "List the registered tools.",
        "tools",
        "tools",
        (
            _column("TOOL", "name", is_elastic=True),
            _number("VERSION", "version"),
            _column("PUBLISHED (UTC)", instant("published_at"), goes=1),
            _column("BY", "published_by", is_elastic=True, goes=3),
            _column("DESCRIPTION", "description", is_elastic=True, goes=2),
        ),
        is_paged=True,
    ),
}
VIOLATION_ROWS = View(
    "List single violations, newest first.",
    "violations/rows",
    "rows",
    (
        _STARTED,
        _TOOL,
        _VERSION,
        _column("PATH", "path", is_elastic=True),
        _column("CODE", "code"),
        _column("EXPECTED", "expected", is_elastic=True, goes=2),
        _column("RECEIVED", "received", is_elastic=True, goes=1),
        _ID,
    ),
    is_paged=True,
)
