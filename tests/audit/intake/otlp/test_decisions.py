"""Guardrails and approvals in spans become decisions, joined with their calls."""

import json
import secrets
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from audit.queries.call_list import call_page
from audit.queries.call_query import Reader, parse
from audit.queries.decisions import decisions_of_call
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_ingest_key
from tests.support.legal_holds import event_texts, missing_in_ledger
from tests.support.otlp_requests import JSON, calls, post, request, span
from tests.support.retention import index_agrees_with_log

pytestmark = pytest.mark.usefixtures("clear_principals")

TRUE = {"boolValue": True}
TOOL = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "refund",
    "gen_ai.tool.call.id": "toolu_1",
    "gen_ai.tool.call.arguments": '{"amount": 700}',
}
# The reference scenario of semantic-conventions-genai: a hook before a tool runs.
HOOK = {
    "gen_ai.operation.name": "run_guardrail",
    "gen_ai.guardrail.component.name": "Hook before tools",
    "gen_ai.guardrail.verdict.type": "deny",
    "gen_ai.guardrail.action.type": "block",
    "gen_ai.guardrail.target.type": "input",
    "gen_ai.guardrail.target.subtype": "tool_call",
    "gen_ai.guardrail.target.id": "toolu_1",
    "gen_ai.guardrail.verdict.reason": "destructive",
}
OPENINFERENCE = {
    "openinference.span.kind": "GUARDRAIL",
    "tool.name": "refund",
    "tool_call.id": "toolu_1",
    "output.value": "BLOCKED",
}


def send(cast: Cast, *spans: dict[str, Any]) -> str:
    answer = post(make_ingest_key(cast.tenant), request(*spans), JSON)
    assert (answer.status_code, answer.rejected) == (200, 0), answer.message
    return answer.message


def states(cast: Cast, query: str = "NOT decision:over-rate") -> list[tuple[str, str]]:
    """Tool and state of the calls that a query finds, also of those that did not run."""
    with tenant_scope(cast.tenant.id):
        wanted = parse(query, Reader(sees_payloads=True)).wanted
        page = call_page(wanted, now=timezone.now())
    return sorted((call.tool_name, call.state) for call in page.calls)


def decisions(cast: Cast) -> list[tuple[str, str | None, str | None]]:
    """Decision, kind and name of who decided, of all calls."""
    with tenant_scope(cast.tenant.id):
        wanted = parse("NOT decision:over-rate", Reader(sees_payloads=True)).wanted
        listed = call_page(wanted, now=timezone.now()).calls
        steps = [step.decision for call in listed for step in decisions_of_call(call)]
    return [(one.decision, one.by_kind, one.by_name) for one in steps]


@pytest.mark.parametrize(
    ("attributes", "tool"),
    [
        (HOOK, "run_guardrail Hook"),  # the scenario does not name the tool: the span's name
        (HOOK | {"gen_ai.tool.name": "refund"}, "refund"),
        (OPENINFERENCE, "refund"),
    ],
)
def test_guardrail_that_blocks_a_call_refuses_it(
    acme: Cast, attributes: dict[str, Any], tool: str
) -> None:
    assert send(acme, span("run_guardrail Hook", attributes=attributes)) == ""
    assert calls(acme.tenant) == []
    assert states(acme) == [(tool, "refused")]
    ((decision, kind, _),) = decisions(acme)
    assert (decision, kind) == ("denied", "guardrail")
    event = json.loads(event_texts(acme)[0])
    assert event["otlp"]["span"]["attributes"] == attributes
    assert event.get("reason") == attributes.get("gen_ai.guardrail.verdict.reason")


@pytest.mark.slow
@pytest.mark.parametrize("is_before", [True, False])
def test_guardrail_is_joined_with_the_call_by_the_tool_call_id(acme: Cast, is_before: bool) -> None:
    trace = secrets.token_hex(16)
    request = {"gen_ai.guardrail.action.type": "escalate"}
    guardrail = span(traceId=trace, attributes=HOOK | request | {"gen_ai.tool.name": "refund"})
    tool = span(traceId=trace, attributes=TOOL, status={"code": 1})
    for one in (guardrail, tool) if is_before else (tool, guardrail):
        send(acme, one)
    assert states(acme) == [("refund", "ok")]
    assert decisions(acme) == [("awaiting", "guardrail", "Hook before tools")]
    assert missing_in_ledger(acme) == []
    assert index_agrees_with_log(acme)


def test_guardrail_inside_a_tool_span_is_about_its_call(acme: Cast) -> None:
    tool_attributes = {k: v for k, v in TOOL.items() if k != "gen_ai.tool.call.id"}
    tool = span(attributes=tool_attributes, status={"code": 2})
    attributes = {k: v for k, v in HOOK.items() if k != "gen_ai.guardrail.target.id"}
    inside = span(traceId=tool["traceId"], parentSpanId=tool["spanId"], attributes=attributes)
    send(acme, tool, inside)
    assert states(acme) == [("refund", "failed")]
    assert decisions(acme) == [("denied", "guardrail", "Hook before tools")]


def test_refused_call_has_the_agent_above_its_span_and_the_service_of_its_resource(
    acme: Cast,
) -> None:
    agent = span(
        "invoke_agent",
        attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "lead"},
    )
    attributes = TOOL | {"gen_ai.tool.approval.resolution": "denied", "gen_ai.request.model": "m"}
    tool = span(traceId=agent["traceId"], parentSpanId=agent["spanId"], attributes=attributes)
    shop = request(agent, tool, **{"service.name": "shop"})
    for _ in range(2):  # sent again, it is a duplicate
        assert post(make_ingest_key(acme.tenant), shop, JSON).rejected == 0
    assert states(acme, "state:refused agent:lead model:m service:shop") == [("refund", "refused")]
    assert index_agrees_with_log(acme)


def test_name_of_the_tool_comes_from_another_span_of_the_request(acme: Cast) -> None:
    trace = secrets.token_hex(16)
    other = TOOL | {"gen_ai.tool.approval.resolution": "denied"}
    send(acme, span(traceId=trace, attributes=HOOK), span(traceId=trace, attributes=other))
    assert states(acme) == [("refund", "refused")]


@pytest.mark.parametrize(
    "changed",
    [
        {"gen_ai.guardrail.action.type": "allow"},
        {"gen_ai.guardrail.action.type": "modify"},
        {"gen_ai.guardrail.action.type": "perhaps"},
        {"gen_ai.guardrail.target.subtype": "llm"},
        {"gen_ai.guardrail.target.type": "output"},
        {"gen_ai.guardrail.target.id": ""},
    ],
)
def test_guardrail_that_decides_nothing_about_a_call_is_skipped(
    acme: Cast, changed: dict[str, Any]
) -> None:
    message = send(acme, span(attributes=HOOK | changed))
    assert "1 spans are not tool calls" in message
    assert event_texts(acme) == []


@pytest.mark.slow
@pytest.mark.generated(4)
@pytest.mark.parametrize("prefix", ["gen_ai", "openclaw"])
@pytest.mark.parametrize(
    ("resolution", "status", "state", "expected"),
    [
        ("approved", 1, "ok", ["awaiting", "approved"]),
        ("allow-once", 2, "failed", ["awaiting", "approved"]),
        ("deny", 0, "refused", ["awaiting", "denied"]),
        ("timeout", 0, "refused", ["awaiting", "cancelled"]),
        ("", 0, "awaiting", ["awaiting"]),
        ("", 1, "ok", ["awaiting"]),
    ],
)
def test_approval_on_a_span_of_a_tool(
    acme: Cast, prefix: str, resolution: str, status: int, state: str, expected: list[str]
) -> None:
    approval = {
        f"{prefix}.tool.approval.requested": TRUE,
        f"{prefix}.tool.approval.resolution": resolution,
        f"{prefix}.tool.approval.duration_ms": {"intValue": "5000"},
        f"{prefix}.tool.approval.approver": "bob",
    }
    body = span(attributes=TOOL | approval, status={"code": status})
    assert send(acme, body) == ""
    assert send(acme, body) == "", "sent again, it is recognized"
    assert states(acme) == [("refund", state)]
    assert [one for one, _, _ in decisions(acme)] == expected
    if len(expected) == 2:
        assert decisions(acme)[1][1:] == ("person", "bob")
    if state in ("refused", "awaiting"):
        assert json.loads(event_texts(acme)[0])["args"] == {"amount": 700}


def test_refusal_without_a_duration_was_made_when_its_span_ended(acme: Cast) -> None:
    approval = {
        "gen_ai.tool.approval.requested": TRUE,
        "gen_ai.tool.approval.resolution": "denied",
        "gen_ai.tool.approval.approver": "bob",
    }
    send(acme, span(attributes=TOOL | approval))  # of 25 ms
    with tenant_scope(acme.tenant.id):
        (refused,) = call_page(parse("state:refused").wanted, now=timezone.now()).calls
        request, answered = (step.decision for step in decisions_of_call(refused))
    assert answered.decided_at - request.decided_at == timedelta(milliseconds=25)


def test_metrics_and_answer_count_spans_of_decisions_apart(acme: Cast) -> None:
    refused = TOOL | {"gen_ai.tool.approval.resolution": "denied"}
    message = send(
        acme, span(attributes=HOOK), span(attributes=refused), span("chat", attributes={})
    )
    assert message == "1 spans are not tool calls and were skipped, as intended."


@pytest.mark.slow
def test_broken_attributes_decide_nothing_and_lose_nothing(acme: Cast) -> None:
    broken: list[Any] = [{"intValue": "7"}, {"arrayValue": {"values": []}}, TRUE, "\x00"]
    broken += ["x" * 2000, {"doubleValue": 1e300}, {"intValue": str(2**62)}]
    spans = [
        span(attributes=base | {name: value})
        for base in (HOOK, OPENINFERENCE, TOOL | {"gen_ai.tool.approval.requested": TRUE})
        for name in (
            *("gen_ai.guardrail.action.type", "gen_ai.guardrail.target.id", "tool.name"),
            *("gen_ai.guardrail.component.name", "gen_ai.tool.approval.resolution"),
            *("gen_ai.tool.approval.duration_ms", "gen_ai.tool.approval.approver", "tool_call.id"),
            "gen_ai.guardrail.security.content.input.value",
        )
        for value in broken
    ]
    send(acme, *spans)
    assert missing_in_ledger(acme) == []
    assert index_agrees_with_log(acme)


ADK = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "pay",
    "gen_ai.tool.type": "FunctionTool",
    "gen_ai.tool.call.id": "call_46_c460c7",
    "gcp.vertex.agent.event_id": "228c04f1",
}
WAITS = '{"error": "This tool call requires confirmation, please approve or reject."}'
REJECTED = '{"error": "This tool call is rejected."}'


@pytest.mark.parametrize(
    "response", ["gen_ai.tool.call.result", "gcp.vertex.agent.tool_response", "output.value"]
)
@pytest.mark.parametrize(
    ("answer", "state", "decided"),
    [
        (WAITS, "awaiting", ("awaiting", None, None)),
        (REJECTED, "refused", ("denied", "person", None)),
    ],
)
def test_adk_tool_that_waits_or_was_rejected_did_not_run(
    acme: Cast, response: str, answer: str, state: str, decided: tuple[str, str | None, str | None]
) -> None:
    kind = {"openinference.span.kind": "TOOL"} if response == "output.value" else {}
    asked = span("execute_tool pay", attributes=ADK | kind | {response: answer})
    received = request(asked, scope="gcp.vertex.agent")
    answered = post(make_ingest_key(acme.tenant), received, JSON)

    assert (answered.status_code, answered.rejected) == (200, 0)
    assert states(acme) == [("pay", state)]
    assert decisions(acme) == [decided]
    assert calls(acme.tenant) == []


@pytest.mark.parametrize(
    ("scope", "answer"),
    [
        ("my.own.tracer", WAITS),  # only ADK's own word counts
        ("gcp.vertex.agent", '{"error": "no such account"}'),
        ("gcp.vertex.agent", '{"error": "This tool call is rejected.", "by": "bank"}'),
        ("gcp.vertex.agent", '["This tool call is rejected."]'),
    ],
)
def test_other_results_of_adk_tools_are_results(acme: Cast, scope: str, answer: str) -> None:
    ran = span("execute_tool pay", attributes=ADK | {"gen_ai.tool.call.result": answer})
    post(make_ingest_key(acme.tenant), request(ran, scope=scope), JSON)

    assert states(acme) == [("pay", "ok")]
    assert decisions(acme) == []
