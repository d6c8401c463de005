"""A call of a mounted MCP server's tool, as FastMCP sends it, is one call whatever comes again."""

from typing import Any

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
    said = {"gen_ai.agent.name": "main"}
    return span("invoke", traceId=TRACE, spanId=f"{1:016x}", attributes=said)


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
