"""The views of `tooltrail query`: the request of each, and the layout of its answer.

The documents are the API's (`/api/v1/openapi.json`). A missing member is shown as empty.
"""

from typing import Any

from tooltrail.cli import facts
from tooltrail.cli.tool_views import TOOL_VIEWS
from tooltrail.cli.values import instant, joined, milliseconds, share, where, why
from tooltrail.cli.view import View, column, number_column

_STARTED = column("STARTED (UTC)", instant("started_at"), goes=2)
_TOOL = column("TOOL", "tool_name", is_elastic=True)
_VERSION = column("VERSION", "tool_version", is_elastic=True, goes=3)
_STATE = column("STATE", "state", is_state=True)
_TOOK = column("DURATION", milliseconds("duration_ms"), is_right=True)
_WHY = column("REASON", why, is_elastic=True, goes=1)
_ID = column("CALL", "invocation_id")
_TRACE = column("TRACE", "trace_id", is_elastic=True, goes=4)
_TOKENS = (
    column("TOKENS IN", "prompt_tokens", is_right=True, goes=2),
    column("TOKENS OUT", "completion_tokens", is_right=True, goes=2),
)


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
    "rule": {"help": "only alerts of the rule with this name"},
    "q": {"help": "only of calls that match these query terms, such as 'tool:search'"},
    "trace": {"help": "prefix of the trace id"},
    "calls": {"help": "named: calls of the two versions; all: all calls of the tool (named)"},
    "kind": {"help": "open, running, overdue, crashed or orphan"},
    "day": {"help": "the UTC day the call started, if its id was used on several days"},
}
_RANGE = ("range", "from", "to")
_BY_TOOL = (*_RANGE, "tool", "version")
_TERMS = {"q": "query terms, such as tool:search state:error"}

_CALLS: dict[str, View] = {
    "summary": View(
        "Show totals of a range.",
        "summary",
        facts=facts.summary,
        options=_RANGE,
        arguments=_TERMS,
    ),
    "traces": View(
        "List traces, newest first.",
        "traces",
        "traces",
        (
            column("STARTED (UTC)", instant("first_started_at"), goes=2),
            column("TRACE", "trace_id", is_elastic=True),
            number_column("CALLS", "calls_started"),
            number_column("FAILED", "calls_failed"),
            number_column("OPEN", "calls_open", goes=3),
            number_column("VIOLATIONS", "violations", goes=1),
            _TOOK,
            column(
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
        options=("state", "trace", *_RANGE, "q"),
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
        options=_RANGE,
        arguments=_TERMS,
        can_follow=True,
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
            column("PATH", "path_pattern", is_elastic=True),
            column("CODE", "code"),
            number_column("VIOLATIONS", "violations"),
            number_column("CALLS", "calls", goes=2),
            column("% OF CALLS", share, is_right=True, goes=2),
            column("LAST (UTC)", instant("last_at"), goes=1),
            column("NEW SINCE", "new_since", goes=4),
        ),
        options=(*_BY_TOOL, "code", "path", "outcome", "rows"),
        facts=facts.total,
        arguments=_TERMS,
    ),
    "latency": View(
        "List durations by tool and version.",
        "latency",
        "versions",
        (
            _TOOL,
            _VERSION,
            number_column("CALLS", "calls"),
            number_column("FAILED", "failed"),
            *(
                column(name.upper(), milliseconds(f"{name}_ms"), is_right=True)
                for name in ("p50", "p95", "p99")
            ),
            *_TOKENS,
        ),
        options=_BY_TOOL,
        facts=facts.total,
        arguments=_TERMS,
    ),
    "tokens": View(
        "List tokens by tool and version, most tokens first.",
        "tokens",
        "versions",
        (
            _TOOL,
            _VERSION,
            number_column("CALLS", "calls"),
            *_TOKENS,
            number_column("TOTAL", "tokens"),
            number_column("CACHE HITS", "cache_hits", goes=3),
        ),
        options=_BY_TOOL,
        facts=facts.total,
        arguments=_TERMS,
    ),
    "agents": View(
        "List agents, most calls first.",
        "agents",
        "items",
        (
            column("AGENT", "agent", is_elastic=True),
            number_column("CALLS", "calls"),
            number_column("FAILED", "failed"),
            number_column("VIOLATING", "violating", goes=1),
            column("P50", milliseconds("p50_ms"), is_right=True, goes=2),
            column("P95", milliseconds("p95_ms"), is_right=True),
            number_column("TOKENS", "tokens", goes=2),
            column("LAST (UTC)", instant("last_at"), goes=3),
        ),
        options=_RANGE,
        facts=facts.total,
        arguments=_TERMS,
    ),
    "conversations": View(
        "List conversations, the latest first.",
        "conversations",
        "items",
        (
            column("LAST (UTC)", instant("last_at")),
            column("CONVERSATION", "run_id", is_elastic=True),
            number_column("TRACES", "traces"),
            number_column("CALLS", "calls"),
            number_column("FAILED", "failed"),
            number_column("VIOLATIONS", "violations", goes=1),
            number_column("TOKENS", "tokens", goes=2),
        ),
        options=_RANGE,
        facts=facts.total,
        arguments=_TERMS,
    ),
    "repeats": View(
        "List identical calls: loops in one trace, and repeats in any.",
        "repeats",
        "listed",
        (
            column("KIND", "kind"),
            _TOOL,
            number_column("CALLS", "calls"),
            number_column("TRACES", "traces", goes=2),
            column("WASTED", milliseconds("wasted_ms"), is_right=True),
            number_column("TOKENS", "wasted_tokens", goes=3),
            _TRACE,
            column("CALL ID", "call_id", is_elastic=True, goes=1),
        ),
        options=(*_RANGE, "tool", "max_calls"),
        facts=facts.repeats,
        arguments=_TERMS,
    ),
    "open": View(
        "List open calls, newest first.",
        "open",
        "calls",
        (
            _STARTED,
            column("STATUS", "condition", is_state=True),
            _TOOL,
            column("OVERDUE BY", milliseconds("overdue_ms"), is_right=True, goes=1),
            column("PRODUCER", "producer_id", is_elastic=True, goes=3),
            _TRACE,
            _ID,
        ),
        is_paged=True,
        options=("kind", *_RANGE),
        facts=facts.tally,
        arguments=_TERMS,
    ),
    "producers": View(
        "List producers, most recent first, with their missing events.",
        "producers",
        "producers",
        (
            column("LAST SEEN (UTC)", instant("last_heard_at")),
            column("PRODUCER", "producer_id", is_elastic=True),
            number_column("MISSING", "missing"),
            number_column("DROPPED", "given_up"),
            column("SILENT", "is_silent"),
        ),
        is_paged=True,
        options=_RANGE,
        facts=facts.producers,
    ),
    "alerts": View(
        "List alerts, newest first.",
        "alerts",
        "alerts",
        (
            column("HELD FROM (UTC)", instant("held_from")),
            column("TO (UTC)", instant("held_to"), goes=2),
            column("SEVERITY", "severity", is_state=True),
            _STATE,
            column("ALERT", "title", is_elastic=True),
            column("RESOLVED BY", "resolved_by", goes=3),
        ),
        is_paged=True,
        options=("state", "rule", *_RANGE),
    ),
    "actions": View(
        "List the audit log, newest first.",
        "actions",
        "actions",
        (
            column("TIME (UTC)", instant("at")),
            column("ACTOR", "actor", is_elastic=True),
            column("ACTION", "verb"),
            column("SUBJECT", "subject", is_elastic=True, goes=1),
            number_column("ENTRY", "ledger_index", goes=2),
        ),
        is_paged=True,
        options=("actor", "verb", "subject", *_RANGE),
    ),
    "inbox": View(
        "List rejected events, newest first.",
        "inbox",
        "lines",
        (
            column("RECEIVED (UTC)", instant("received_at")),
            column("CODE", "code"),
            column("RESOLUTION", "resolution", goes=3),
            column("REASON", "message", is_elastic=True),
            column("EXCERPT", "excerpt", is_elastic=True, goes=2),
            column("ID", "id", goes=1),
        ),
        is_paged=True,
        options=("state", "code", *_RANGE),
    ),
    "ledger": View("Show the state of the ledger.", "ledger", facts=facts.ledger),
    "checkpoints": View(
        "List signed checkpoints of the ledger, newest first.",
        "ledger/checkpoints",
        "checkpoints",
        (
            column("SIGNED (UTC)", instant("signed_at")),
            number_column("SIZE", "size"),
            number_column("EPOCH", "epoch", goes=2),
            column("ROOT", "root", is_elastic=True),
            column("ORIGIN", "origin", is_elastic=True, goes=1),
        ),
        is_paged=True,
    ),
    "reports": View(
        "List reports, newest first.",
        "reports",
        "reports",
        (
            column("MADE (UTC)", instant("created_at")),
            column("KIND", "kind"),
            column("FROM (UTC)", instant("from")),
            column("TO (UTC)", instant("to")),
            column("BY", "made_by", is_elastic=True, goes=1),
            number_column("LEDGER", "ledger_size", goes=2),
            column("ID", "id", goes=3),
        ),
        is_paged=True,
    ),
    "channels": View(
        "List the channels of alerts; needs the scope admin.",
        "channels",
        "channels",
        (
            column("CHANNEL", "name", is_elastic=True),
            column("KIND", "kind"),
            column("WHERE", where, is_elastic=True),
            column("SECRET", "has_secret", goes=2),
            column("CHANGED (UTC)", instant("changed_at"), goes=1),
            column("BY", "changed_by", is_elastic=True, goes=1),
        ),
    ),
    "streams": View(
        "List the streams to SIEMs, and how each stands; needs the scope admin.",
        "streams",
        "items",
        (
            column("STREAM", "name", is_elastic=True),
            column("OF", "of"),
            column("WAY", "way", goes=2),
            column("STATE", "state"),
            number_column("CURSOR", "next_index", goes=1),
            number_column("BEHIND", "behind_entries"),
            column("FAILURE", "failure", is_elastic=True, goes=2),
        ),
    ),
    "keys": View(
        "List API keys, newest first; needs the scope admin.",
        "keys",
        "keys",
        (
            column("KEY", "key_id"),
            column("NAME", "name", is_elastic=True),
            column("SCOPES", joined("scopes"), is_elastic=True),
            column("OWNER", "owner", is_elastic=True, goes=2),
            column("LAST USED (UTC)", instant("last_used_at"), goes=1),
            column("EXPIRES (UTC)", instant("expires_at"), goes=3),
            column("REVOKED (UTC)", instant("revoked_at"), goes=4),
        ),
        is_paged=True,
        options=("state",),
        needs={"state": {"help": "idle: only keys that nobody used for 90 days"}},
    ),
}
VIEWS = _CALLS | TOOL_VIEWS
"""All views by name."""
VIOLATION_ROWS = View(
    "List single violations, newest first.",
    "violations/rows",
    "rows",
    (
        _STARTED,
        _TOOL,
        _VERSION,
        column("PATH", "path", is_elastic=True),
        column("CODE", "code"),
        column("EXPECTED", "expected", is_elastic=True, goes=2),
        column("RECEIVED", "received", is_elastic=True, goes=1),
        _ID,
    ),
    is_paged=True,
    arguments=_TERMS,
)
