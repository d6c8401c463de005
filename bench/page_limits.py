"""The pages that `bench/pages.py` requests, and the times promised for them."""

from dataclasses import dataclass

INDEXED, DAY, TWO, REPEATS, API = 60.0, 80.0, 150.0, 300.0, 100.0  # ms
PAYLOADS = 700.0  # ms, of which half a second is for reading the log


@dataclass(frozen=True)
class Page:
    """A request and its promised time."""

    name: str
    address: str
    limit_ms: float
    zone: str = "UTC"
    """The viewer's time zone."""


PAGES = [
    Page("traces, newest", "/traces/", INDEXED),
    Page("failed traces", "/traces/?state=failed", TWO),
    Page("a trace of 20 calls", "/traces/{trace}", 80.0),
    Page("a trace of 1,000 calls", "/traces/trace-of-1000", 80.0),
    Page("a trace of 10,000 calls", "/traces/trace-of-10000", 1000.0),
    Page("its failed calls", "/traces/trace-of-1000?only=failed", 80.0),
    Page("overview, 24 hours", "/?range=24h", DAY),
    Page("overview, 30 days", "/?range=30d", TWO),
    Page("overview, 30 days in India", "/?range=30d", TWO, "Asia/Kolkata"),
    Page("overview, 6 hours", "/?range=6h", DAY),
    Page("violations, 24 hours", "/violations/?range=24h", DAY),
    Page("violations, 30 days", "/violations/?range=30d", TWO),
    Page("latency, 24 hours", "/latency/?range=24h", DAY),
    Page("latency, 30 days", "/latency/?range=30d", TWO),
    Page("newest of 30 days", "/latency/newest?range=30d", REPEATS),
    Page("repeats of a day", "/repeats/?range=24h", REPEATS),
    Page("agents, 24 hours", "/agents/?range=24h", TWO),
    Page("agents, 30 days", "/agents/?range=30d", TWO),
    Page("an agent, 30 days", "/agents/?range=30d&agent=agent_3", TWO),
    Page("conversations, 30 days", "/conversations/?range=30d", TWO),
    Page("a conversation", "/conversations/run-{trace}", INDEXED),
    Page("the graph of a trace", "/traces/{trace}/graph", INDEXED),
    Page("calls, newest", "/calls/", INDEXED),
    Page("calls of a tool", "/calls/?q=tool:tool_7", INDEXED),
    Page("calls of a run", "/calls/?q=run:run-{trace}", INDEXED),
    Page("calls of a trace", "/calls/?q=trace:{trace}", INDEXED),
    Page("calls of traces by prefix", "/calls/?q=trace:{prefix}*", INDEXED),
    Page("calls with one call id", "/calls/?q=call:{call}", INDEXED),
    Page("calls of one hour", "/calls/?q=since:{hour}+until:{hour_end}", INDEXED),
    Page("open calls", "/calls/?q=state:open", INDEXED),
    Page("failed calls", "/calls/?q=state:error", TWO),
    Page("tool and state", "/calls/?q=tool:tool_7+state:error", TWO),
    Page("error type and duration", "/calls/?q=error:TIMEOUT+duration:>500ms", TWO),
    Page("tool and violation", "/calls/?q=tool:tool_7+violation:WRONG_TYPE", TWO),
    Page("an unknown error code", "/calls/?q=code:NEVER", TWO),
    Page("an unknown code of a tool", "/calls/?q=tool:tool_7+code:NEVER", TWO),
    Page("no match, bounded search", "/calls/?q=case:NEVER", TWO),
    Page("no match of a tool, bounded", "/calls/?q=tool:tool_7+case:NEVER", TWO),
    Page("neither OK nor of a tool", "/calls/?q=NOT+state:ok+NOT+tool:tool_7", TWO),
    Page("OR and NOT", "/calls/?q=(tool:tool_7+OR+error:TIMEOUT)+NOT+state:ok", TWO),
    Page("free text without a match", "/calls/?q=nowhere", TWO),
    Page("a payload value of a tool", "/calls/?q=tool:tool_7+args.q:NEVER", PAYLOADS),
    Page("a page in the middle", "/calls/?before={middle},{zero}", INDEXED),
    Page("the page before it", "/calls/?after={middle},{zero}", INDEXED),
    Page("count", "/calls/count?q=state:error", TWO),
    Page("live tail", "/calls/tail", INDEXED),
    Page("completion", "/calls/complete?q=tool:", TWO),
    Page("open executions", "/calls/open", TWO),
    Page("overdue", "/calls/open?kind=overdue", TWO),
    Page("audit log, newest", "/actions/", INDEXED),
    Page("audit log, sorted", "/actions/?sort=actor", TWO),
    Page("API: summary, 24 hours", "/api/v1/summary", API),
    Page("API: summary, 30 days", "/api/v1/summary?range=30d", TWO),
    Page("API: calls, newest", "/api/v1/calls", API),
    Page("API: calls of a tool", "/api/v1/calls?q=tool:tool_7", API),
    Page("API: failed calls", "/api/v1/calls?q=state:error", API),
    Page("API: open", "/api/v1/open", API),
    Page("API: traces, newest", "/api/v1/traces", API),
    Page("API: failed traces", "/api/v1/traces?state=failed", API),
    Page("API: a trace of 20 calls", "/api/v1/traces/{trace}", API),
    Page("API: a trace of 1,000 calls", "/api/v1/traces/trace-of-1000", API),
    Page("API: violations, 24 hours", "/api/v1/violations", API),
    Page("API: violations, 30 days", "/api/v1/violations?range=30d", API),
    Page("API: single violations", "/api/v1/violations/rows?range=30d", API),
    Page("API: violations of a tool", "/api/v1/violations/rows?range=30d&tool=tool_7", API),
    Page("API: repeats of a day", "/api/v1/repeats?range=24h", API),
    Page("API: latency, 24 hours", "/api/v1/latency", API),
    Page("API: tokens, 24 hours", "/api/v1/tokens", API),
    Page("API: producers", "/api/v1/producers", API),
    Page("API: inbox", "/api/v1/inbox", API),
    Page("API: tools", "/api/v1/tools", API),
]
