"""The calls expected from each framework's script, live or from its fixture."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from audit.queries.calls import trace_detail
from tenants.models import Tenant
from tenants.scope import tenant_scope
from tests.support.otlp_requests import Stored, by_name, calls


def _parents(tenant: Tenant, stored: list[Stored]) -> dict[str, str | None]:
    """By tool, the tool of the call it was made from, as the timeline shows it."""
    shown = []
    with tenant_scope(tenant.id):
        for trace_id in {call.row.trace_id for call in stored}:
            detail = trace_detail(trace_id)
            assert detail is not None
            shown += detail.calls
    names: dict[UUID | None, str] = {call.invocation_id: call.tool_name for call in shown}
    assert len(shown) == len(stored)
    return {call.tool_name: names.get(call.parent_invocation_id) for call in shown}


def _failure(call: Stored) -> tuple[str, str, str | None]:
    return call.row.state, call.row.error_type, call.row.error_message


def plain_otel(tenant: Tenant) -> None:
    """tests/support/otlp/frameworks/plain_otel.py"""
    stored = by_name(tenant)

    assert stored.keys() == {"plan_trip", "get_weather", "book_flight"}
    assert _parents(tenant, [*stored.values()]) == {
        "plan_trip": None,
        "get_weather": "plan_trip",
        "book_flight": None,
    }
    assert stored["get_weather"].start["args"] == {"city": "London"}
    assert stored["get_weather"].output == {"celsius": 22.5}
    assert (stored["plan_trip"].row.state, stored["plan_trip"].output) == ("ok", {"days": 3})
    assert _failure(stored["book_flight"]) == ("failed", "timeout", "no such flight")
    for name, call in stored.items():
        assert (call.row.tool_call_id, call.row.run_id) == (f"call_{name}", "conversation-7")
        assert call.start["tool_type"] == "function"
        assert call.start["context"] == {
            "agent": "traveller",
            "conversation": "conversation-7",
            "model": "gpt-5",
            "service": "weather-agent",
        }


def pydantic_ai(tenant: Tenant) -> None:
    """tests/support/otlp/frameworks/pydantic_ai_agent.py"""
    stored = by_name(tenant)

    assert stored.keys() == {"get_weather", "ask_forecaster", "read_sensor", "book_flight"}
    assert _parents(tenant, [*stored.values()]) == {
        "get_weather": None,
        "ask_forecaster": None,
        "read_sensor": "ask_forecaster",
        "book_flight": None,
    }
    outputs = {name: (call.start["args"], call.output) for name, call in stored.items()}
    del outputs["book_flight"]
    assert outputs == {
        "get_weather": ({"city": "a"}, {"celsius": 22.5}),
        "ask_forecaster": ({"question": "a"}, {"read_sensor": 22.5}),
        "read_sensor": ({"station": 0}, 22.5),
    }
    assert stored["book_flight"].start["args"] == {"to": "a"}
    assert _failure(stored["book_flight"]) == ("failed", "RuntimeError", "no such flight")
    assert stored["read_sensor"].start["context"]["agent"] == "forecaster"
    assert stored["get_weather"].start["context"]["agent"] == "assistant"
    for name, call in stored.items():
        assert call.row.tool_call_id == f"pyd_ai_tool_call_id__{name}"
        assert call.row.run_id == call.start["context"]["conversation"]
        assert call.start["context"]["service"] == "weather"


def langchain(tenant: Tenant) -> None:
    """tests/support/otlp/frameworks/langchain_tools.py"""
    stored = by_name(tenant)

    assert stored.keys() == {"plan_trip", "get_weather", "book_flight"}
    assert _parents(tenant, [*stored.values()]) == {
        "plan_trip": None,
        "get_weather": "plan_trip",
        "book_flight": None,
    }
    assert (stored["get_weather"].row.state, stored["get_weather"].output) == (
        "ok",
        {"celsius": 22.5},
    )
    assert stored["plan_trip"].output == "London: 22.5"
    assert {call.start["args"] for call in stored.values()} == {"London"}
    assert _failure(stored["book_flight"]) == ("failed", "ValueError", "no such flight")
    assert {call.row.run_id for call in stored.values()} == {"conversation-7"}


def _mcp(tenant: Tenant, args: list[Any]) -> list[Stored]:
    stored = calls(tenant)

    assert [(call.row.tool_name, *_failure(call)[:2]) for call in stored] == [
        ("book_flight", "failed", "tool_error"),
        ("get_weather", "ok", ""),
        ("get_weather", "ok", ""),
    ]
    assert [call.start["args"] for call in stored] == args
    return stored


def mcp_in_process(tenant: Tenant) -> None:
    """tests/support/otlp/frameworks/mcp_client_server.py both"""
    _mcp(tenant, [None, None, None])


def mcp_two_processes(tenant: Tenant) -> None:
    """tests/support/otlp/frameworks/mcp_client_server.py client content"""
    stored = _mcp(tenant, [{"to": "London"}, {"city": "London"}, {"city": "Paris"}])

    assert stored[0].row.error_message == "Error executing tool book_flight"
    assert stored[1].output["structuredContent"] == {"celsius": 22.5}
    for call in stored:
        kinds = [call.end["otlp"]["span"]["kind"]]
        kinds += [each["kind"] for each in call.end["otlp"]["merged"]]
        assert kinds == [3, 2]  # the client's and the server's


EXPECTATIONS: dict[str, tuple[Callable[[Tenant], None], list[str]]] = {
    "plain_otel.py protobuf": (plain_otel, ["plain-otel.pb"]),
    "plain_otel.py json": (plain_otel, ["plain-otel.json"]),
    "pydantic_ai_agent.py 5": (pydantic_ai, ["pydantic-ai-v5.pb"]),
    "pydantic_ai_agent.py 2": (pydantic_ai, ["pydantic-ai-v2.pb"]),
    "langchain_tools.py": (langchain, ["openinference-langchain.pb"]),
    "mcp_client_server.py both": (mcp_in_process, ["mcp-in-process.pb"]),
    "mcp_client_server.py client content": (mcp_two_processes, ["mcp-server.pb", "mcp-client.pb"]),
}
"""By script: the expected calls, and the fixtures it was captured in."""
