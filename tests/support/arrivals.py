"""Spans and an executor's events of one call, sent in every order of arrival."""

import itertools
import json
import secrets
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from audit.models import Invocation
from audit.queries.calls import trace_detail
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, send_events
from tests.support.otlp_requests import JSON, post, request, span

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
GENAI = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get_weather"}
OK = {"code": 1}


def spans(number: int, parent: int = 0, scope: str = "agent", **members: Any) -> bytes:
    named: dict[str, Any] = {"attributes": GENAI, "status": OK} | members
    named |= {"traceId": TRACE, "spanId": f"{number:016x}"}
    if parent:
        named["parentSpanId"] = f"{parent:016x}"
    return request(span(**named), scope=scope)


def agent_run() -> bytes:
    """A span that is no tool call."""
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "planner"}
    return spans(1, 9, attributes=attributes, name="invoke_agent planner")


def plan() -> bytes:
    """The tool call around the agent's run. It is a span only; no SDK reports it."""
    return spans(9, attributes=GENAI | {"gen_ai.tool.name": "plan"})


def tool_span() -> bytes:
    return spans(2, 1)


def outer_span() -> bytes:
    """A span of another layer, around the tool's span."""
    return spans(3, 4, scope="outer")


def inner_span() -> bytes:
    return spans(2, 3)


def called_in(number: int, **members: Any) -> list[dict[str, Any]]:
    """A call of the SDK in the span of that number, with a violation, which spans do not have."""
    guard = {
        "strategy": "coerce",
        "outcome": "failed",
        "violations": [{"path": "$.city", "code": "WRONG_TYPE", "expected": "string"}],
    }
    start, end = make_call(trace_id=TRACE, tool_name="get_weather", guard=guard, **members)
    return [start | {"traceparent": f"00-{TRACE}-{number:016x}-01"}, end]


type Sent = bytes | list[dict[str, Any]]
type Sending = Callable[[], None]


@dataclass
class Sender:
    """Sends requests of one tenant: events or spans."""

    cast: Cast
    key: str

    def __call__(self, what: Sent) -> None:
        if isinstance(what, bytes):
            answer = post(self.key, what, JSON)
            assert (answer.status_code, answer.rejected) == (200, 0)
        else:
            assert send_events(self.cast.tenant, what, key=self.key)["rejected"] == []


@dataclass(frozen=True)
class Arrival:
    """The bodies of one trace as created, and the order in which they were sent."""

    trace_id: str
    order: tuple[int, ...]
    bodies: list[Sent]


EVERY_ORDER = pytest.mark.parametrize(
    "is_apart", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["together", "apart"]
)


def send_in_every_order(
    send: Sender, make: Callable[[], list[Sent]], *, is_apart: bool, is_repeated: bool = False
) -> list[Arrival]:
    """Send what `make` returns in every order, each order in a trace of its own.

    The first bodies of all orders are sent before the second ones: each in a request of its own,
    or all events in one request and all spans in another. With `is_repeated`, all is sent twice.
    """
    arrivals = []
    for order in itertools.permutations(range(len(make()))):
        trace_id = secrets.token_hex(16)
        arrivals.append(Arrival(trace_id, order, [in_trace(each, trace_id) for each in make()]))
    places = range(len(arrivals[0].order))
    steps = [[one.bodies[one.order[at]] for one in arrivals] for at in places]
    if is_repeated:
        steps += [[one.bodies[at] for one in arrivals] for at in places]
    for step in steps:
        for body in step if is_apart else joined(step):
            send(body)
    return arrivals


def in_trace(what: Sent, trace_id: str) -> Sent:
    if isinstance(what, bytes):
        return what.replace(TRACE.encode(), trace_id.encode())
    events: list[dict[str, Any]] = json.loads(json.dumps(what).replace(TRACE, trace_id))
    return events


def joined(bodies: Iterable[Sent]) -> Iterator[Sent]:
    """The same content in at most two requests: one of events, one of spans."""
    events: list[dict[str, Any]] = []
    resource_spans: list[Any] = []
    for body in bodies:
        if isinstance(body, bytes):
            resource_spans += json.loads(body)["resourceSpans"]
        else:
            events += body
    if events:
        yield events
    if resource_spans:
        yield json.dumps({"resourceSpans": resource_spans}).encode()


def rows(cast: Cast) -> list[Invocation]:
    with tenant_scope(cast.tenant.id):
        return list(
            Invocation.objects.for_tenant(cast.tenant.id).order_by("started_at", "invocation_id")
        )


def rows_by_trace(cast: Cast) -> dict[str, list[Invocation]]:
    by_trace = defaultdict(list)
    for row in rows(cast):
        by_trace[row.trace_id].append(row)
    return by_trace


def shown(cast: Cast, trace_id: str = TRACE) -> dict[Any, Any]:
    """The calls of the trace by id, as its page shows them."""
    with tenant_scope(cast.tenant.id):
        detail = trace_detail(trace_id)
    assert detail is not None
    return {call.invocation_id: call for call in detail.calls}
