"""The views of `tooltrail query`: the request of each, and the layout of its answer.

The documents are the API's (`/api/v1/openapi.json`). A missing member is shown as empty.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tooltrail.cli.tables import Column, tame

type Row = Mapping[str, Any]


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


# How values are written


def _text(name: str) -> Callable[[Row], str]:
    def of(row: Row) -> str:
        value = row.get(name)
        if isinstance(value, bool):
            return "yes" if value else "no"
        return f"{value:,}" if isinstance(value, int) else str(value if value is not None else "")

    return of


def instant(name: str) -> Callable[[Row], str]:
    """Show a member as `2026-11-20 10:15:00`, in UTC as received."""
    return lambda row: str(row.get(name) or "")[:19].replace("T", " ")


def _ms(name: str) -> Callable[[Row], str]:
    return lambda row: duration(row.get(name))


def duration(milliseconds: float | None) -> str:
    """Write milliseconds with about three digits and a unit; '' for None."""
    if milliseconds is None:
        return ""
    for unit, length in (("h", 3_600_000), ("min", 60_000), ("s", 1000), ("ms", 1)):
        if milliseconds >= length or unit == "ms":
            number = milliseconds / length
            return f"{number:.{0 if number >= 100 else 1}f} {unit}"
    return ""


def _share(row: Row) -> str:
    return "" if row.get("share") is None else f"{row['share']:.1%}"


def _why(row: Row) -> str:
    """The error and the violation of a call, or of a trace's reason."""
    parts = [row.get("error_type"), row.get("error_code"), row.get("error_message")]
    text = " ".join(str(part) for part in parts if part)
    if row.get("violation_path"):
        text = f"{text} {row['violation_path']} {row['violation_code']}".strip()
    return text


def _column(head: str, of: Callable[[Row], str] | str, **more: Any) -> Column:
    return Column(head, _text(of) if isinstance(of, str) else of, **more)


_STARTED = _column("STARTED (UTC)", instant("started_at"), goes=2)
_TOOL = _column("TOOL", "tool_name", is_elastic=True)
_VERSION = _column("VERSION", "tool_version", is_elastic=True, goes=3)
_STATE = _column("STATE", "state")
_TOOK = _column("DURATION", _ms("duration_ms"), is_right=True)
_WHY = _column("REASON", _why, is_elastic=True, goes=1)
_ID = _column("CALL", "invocation_id")
_TRACE = _column("TRACE", "trace_id", is_elastic=True, goes=4)
_TOKENS = (
    _column("TOKENS IN", "prompt_tokens", is_right=True, goes=2),
    _column("TOKENS OUT", "completion_tokens", is_right=True, goes=2),
)


def _number(head: str, name: str, goes: int = 0) -> Column:
    return _column(head, name, is_right=True, goes=goes)


# Documents with more than rows


def _facts(pairs: Iterator[tuple[str, Any]]) -> Iterator[str]:
    shown = [(name, tame(str(value))) for name, value in pairs if value not in (None, "")]
    width = max((len(name) for name, _ in shown), default=0)
    yield from (f"{name:{width}}  {value}" for name, value in shown)


def _summary(document: Row) -> Iterator[str]:
    durations = document["duration_ms"]

    def pairs() -> Iterator[tuple[str, Any]]:
        yield "from", instant("from")(document)
        yield "to", f"{instant('to')(document)} UTC"
        for name in ("calls", "errors", "open", "violations"):
            yield name, f"{document[name]:,}"
        yield "tokens", f"{document['prompt_tokens']:,} in, {document['completion_tokens']:,} out"
        if durations["p50"] is not None:
            yield "duration", ", ".join(f"{name} {duration(durations[name])}" for name in durations)

    yield from _facts(pairs())


def _trace(document: Row) -> Iterator[str]:
    def pairs() -> Iterator[tuple[str, Any]]:
        yield "trace", document["trace_id"]
        yield "run", document["run_id"]
        yield "started", f"{instant('first_started_at')(document)} UTC"
        yield "duration", duration(document["duration_ms"])
        for name in ("calls_started", "calls_failed", "calls_open", "violations"):
            yield name.replace("_", " ").replace(" started", ""), f"{document[name]:,}"

    yield from _facts(pairs())
    if document["is_cut"]:
        yield f"The first {len(document['calls']):,} calls:"
    yield ""


def _call(document: Row) -> Iterator[str]:
    """Everything about one call, its payloads as JSON."""
    apart = {"violations", "start", "end", "withheld", "log_error", "duration_ms"}
    apart |= {"violation_path", "violation_code", "started_at", "ended_at"}

    def pairs() -> Iterator[tuple[str, Any]]:
        for name, value in document.items():
            if name == "started_at":
                yield "started", f"{instant(name)(document)} UTC"
                yield "duration", duration(document["duration_ms"])
            elif name not in apart and value not in (None, 0, False):
                yield name.replace("_", " "), value

    yield from _facts(pairs())
    for one in document["violations"]:
        got = f", got {one['received']}" if one["received"] else ""
        text = f"{one['path']} {one['code']}: expected {one['expected']}{got}"
        yield f"violation  {tame(text)}"
    for kind, member in (("start", "args"), ("end", "output")):
        recorded = document[kind]
        if recorded is None:
            continue
        yield ""
        yield f"{member}  ({kind} at ledger index {recorded['ledger_index']:,})"
        if document["withheld"]:
            yield "  hidden: the key lacks the scope payloads"
        elif recorded["event"] is None:
            yield "  erased"
        else:
            value = recorded["event"].get(member)
            for line in json.dumps(value, indent=2, ensure_ascii=False).splitlines():
                yield f"  {tame(line)}"
    if document["log_error"]:
        yield f"The log could not be read: {tame(document['log_error'])}"


def _tally(document: Row) -> Iterator[str]:
    yield ", ".join(f"{count:,} {kind}" for kind, count in document["tally"].items())
    yield ""


def _producers(document: Row) -> Iterator[str]:
    yield (
        f"{document['producer_count']:,} producers, {document['heard_lately']:,} active in the"
        f" last 15 minutes, {document['inbox']:,} rejected events in the inbox"
    )
    for gap in document["gaps"]:
        yield f"dropped: {gap['lost']:,} events, {tame(gap['reason'])}"
    yield ""


def _total(document: Row) -> Iterator[str]:
    yield f"{instant('from')(document)} to {instant('to')(document)} UTC"
    yield ""


def _repeats(document: Row) -> Iterator[str]:
    yield f"{instant('from')(document)} to {instant('to')(document)} UTC"
    yield (
        f"{document['loops']:,} loops of {document['loop_calls']:,} calls,"
        f" {document['repeated']:,} repeats of {document['repeated_calls']:,}"
    )
    yield ""


OPTIONS: dict[str, dict[str, Any]] = {
    "range": {"help": "how far back: 15m, 24h, 30d"},
    "from": {"help": "instead of --range: the start, an instant or a day, UTC"},
    "to": {"help": "with --from: the end (now)"},
    "tool": {"help": "only this tool"},
    "version": {"help": "only this version of the tool"},
    "code": {"help": "only this code"},
    "path": {"help": "only this path, with [*] for indexes"},
    "outcome": {"help": "only this guard outcome"},
    "look_at": {"help": "maximum number of calls read, up to 400000 (60000)", "type": int},
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
    "summary": View("Show totals of a range.", "summary", facts=_summary, options=_RANGE),
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
                    f"{row['reason']['tool_name']} {_why(row['reason'])}".strip()
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
        facts=_trace,
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
        facts=_call,
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
            _column("% OF CALLS", _share, is_right=True, goes=2),
            _column("LAST (UTC)", instant("last_at"), goes=1),
            _column("NEW SINCE", "new_since", goes=4),
        ),
        options=(*_BY_TOOL, "code", "path", "outcome", "rows"),
        facts=_total,
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
                _column(name.upper(), _ms(f"{name}_ms"), is_right=True)
                for name in ("p50", "p95", "p99")
            ),
            *_TOKENS,
        ),
        options=_BY_TOOL,
        facts=_total,
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
        facts=_total,
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
            _column("WASTED", _ms("wasted_ms"), is_right=True),
            _number("TOKENS", "wasted_tokens", goes=3),
            _TRACE,
            _column("CALL ID", "call_id", is_elastic=True, goes=1),
        ),
        options=(*_RANGE, "tool", "look_at"),
        facts=_repeats,
    ),
    "open": View(
        "List open calls, newest first.",
        "open",
        "calls",
        (
            _STARTED,
            _column("STATUS", "condition"),
            _TOOL,
            _column("OVERDUE BY", _ms("overdue_ms"), is_right=True, goes=1),
            _column("PRODUCER", "producer_id", is_elastic=True, goes=3),
            _TRACE,
            _ID,
        ),
        is_paged=True,
        options=("kind",),
        facts=_tally,
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
        facts=_producers,
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
