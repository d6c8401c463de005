"""A call of a mounted MCP server's tool, as FastMCP sends it, is one call whatever comes again."""

import itertools
from typing import Any

import pytest

from audit.index.reindex import reindex
from audit.models import RejectedEvent
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_ingest_key
from tests.support.otlp_requests import JSON, calls, post, request, span
from tests.support.recount import assert_consistent

TRACE = "0af7651916cd43dd8448eb211c80319c"
CLIENT, SERVER, INTERNAL = 3, 2, 1


def fastmcp(number: int, kind: int, name: str, **attributes: str) -> dict[str, Any]:
    given = {"mcp.method.name": "tools/call", **attributes}
    ids = {"traceId": TRACE, "spanId": f"{number:016x}", "parentSpanId": f"{number - 1:016x}"}
    return span(name, kind=kind, attributes=given, **ids)


def mounted_call() -> list[dict[str, Any]]:
    outer = {"gen_ai.tool.name": "m_lookup"}
    return [
        fastmcp(2, CLIENT, "tools/call m_lookup", **outer),
        fastmcp(3, SERVER, "tools/call m_lookup", **outer),
        fastmcp(4, INTERNAL, "delegate lookup", **{"fastmcp.component.key": "lookup"}),
        fastmcp(5, SERVER, "tools/call lookup", **{"gen_ai.tool.name": "lookup"}),
    ]


def agent() -> dict[str, Any]:
    context = {"gen_ai.agent.name": "main"}
    return span("invoke", traceId=TRACE, spanId=f"{1:016x}", attributes=context)


@pytest.mark.slow
def test_mounted_tool_stays_one_call_whatever_comes_again(acme: Cast) -> None:
    key = make_ingest_key(acme.tenant)
    spans = mounted_call()
    for sent in (spans, spans[2:], [spans[3]], [agent()], spans[:1], [*spans, agent()]):
        answer = post(key, request(*sent, scope="fastmcp"), JSON)
        assert (answer.status_code, answer.rejected) == (200, 0)
        (call,) = calls(acme.tenant)
        assert call.row.tool_name == "m_lookup"
    assert call.row.agent == "main"
    assert len(call.end["otlp"]["merged"]) == 3
    assert_consistent(acme.tenant)
    assert reindex(acme.tenant.id, repair=False, progress=lambda *_: None).is_clean
    with tenant_scope(acme.tenant.id):
        assert not RejectedEvent.objects.for_tenant(acme.tenant.id).exists()


def failed(one: dict[str, Any]) -> dict[str, Any]:
    return one | {"status": {"code": 2, "message": "no such record"}}


ORDERS = list(itertools.permutations(range(5)))


def check_one_by_one(cast: Cast, order: tuple[int, ...], *, has_failed: bool) -> None:
    key = make_ingest_key(cast.tenant)
    spans = [agent(), *mounted_call()]
    if has_failed:
        spans[-1] = failed(spans[-1])  # only the mounted server knows
    for number in order:
        answer = post(key, request(spans[number], scope="fastmcp"), JSON)
        assert (answer.status_code, answer.rejected) == (200, 0)

    (call,) = calls(cast.tenant)
    assert (call.row.tool_name, call.row.agent) == ("m_lookup", "main")
    assert call.row.state == ("failed" if has_failed else "ok")
    assert len(call.end["otlp"]["merged"]) == 3
    assert_consistent(cast.tenant)
    assert reindex(cast.tenant.id, repair=False, progress=lambda *_: None).is_clean
    with tenant_scope(cast.tenant.id):
        assert not RejectedEvent.objects.for_tenant(cast.tenant.id).exists()


@pytest.mark.slow
@pytest.mark.parametrize("has_failed", [False, True])
def test_mounted_tool_is_one_call_if_its_spans_come_one_by_one(
    acme: Cast, *, has_failed: bool
) -> None:
    check_one_by_one(acme, (4, 3, 2, 1, 0), has_failed=has_failed)


@pytest.mark.slow
@pytest.mark.generated(4)
@pytest.mark.parametrize("order", ORDERS)
def test_mounted_tool_is_one_call_in_whatever_order_its_spans_come(
    acme: Cast, order: tuple[int, ...]
) -> None:
    check_one_by_one(acme, order, has_failed=False)


def test_call_handed_on_without_a_span_around_it_has_the_mounted_name(acme: Cast) -> None:
    delegate = mounted_call()[2]
    answer = post(make_ingest_key(acme.tenant), request(delegate, scope="fastmcp"), JSON)

    assert (answer.status_code, answer.rejected, answer.message) == (200, 0, "")
    (call,) = calls(acme.tenant)
    assert call.row.tool_name == "lookup"
