"""Two traces side by side."""

import re
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest

from audit.models import Invocation
from audit.pages.traces.alignment import ALIGNED_MAX, align
from audit.queries.calls import trace_detail
from tenants.models import Action
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, send_events
from tests.support.pages import signed_in, text
from tests.support.traces import FAILED_OUTPUT

SECRET = "payload7c2d"


def _trace(trace_id: str, *calls: dict[str, Any]) -> list[dict[str, Any]]:
    began_at = datetime.now(UTC) - timedelta(minutes=5)
    return [
        event
        for number, members in zip(count(), calls, strict=False)
        for event in make_call(
            trace_id=trace_id,
            started_at=began_at + timedelta(seconds=number),
            **({"call_id": f"{number}" * 64} | members),
        )
    ]


@pytest.fixture
def traces(acme: Cast) -> Cast:
    """Trace b misses a's second call, has one more, and another argument and result in the last."""
    a = _trace(
        "a",
        {"tool_name": "plan"},
        {"tool_name": "fetch"},
        {"tool_name": "book", "call_id": "x" * 64, "args": {"city": SECRET, "days": 3}},
    )
    b = _trace(
        "b",
        {"tool_name": "plan"},
        {"tool_name": "book", "call_id": "y" * 64, "args": {"city": "Rome", "days": 3}}
        | {"output": FAILED_OUTPUT, "is_error": True, "duration_ms": 30.0},
        {"tool_name": "notify"},
    )
    send_events(acme.tenant, a + b)
    return acme


@pytest.mark.slow
def test_calls_are_aligned_by_tool_and_order(traces: Cast) -> None:
    with tenant_scope(traces.tenant.id):
        left, right = trace_detail("a"), trace_detail("b")
    assert left
    assert right
    pairs = align(left.calls, right.calls)
    names = [
        tuple(call.tool_name if call else None for call in (pair.left, pair.right))
        for pair in pairs
    ]
    assert names == [("plan", "plan"), ("fetch", None), ("book", "book"), (None, "notify")]
    plan, _, book, _ = pairs
    assert plan.has_same_arguments
    assert plan.has_same_outcome
    assert plan.slower_us == 0
    assert not book.has_same_arguments
    assert not book.has_same_outcome
    assert book.slower_us == 10_000
    assert len(align(left.calls * 400, right.calls * 400)) <= 2 * ALIGNED_MAX


def test_the_page_counts_what_differs(traces: Cast) -> None:
    page = text(signed_in(traces.viewer).get("/traces/a/compare?with=b").content.decode())
    for figure in ("Only in A 1", "Only in B 1", "Other arguments 1 of 2", "Other outcome 1 of 2"):
        assert figure in page


def test_changes_are_shown_to_those_who_see_payloads_and_recorded(traces: Cast) -> None:
    page = signed_in(traces.editor).get("/traces/a/compare?with=b&pair=3").content.decode()
    shown = text(page)
    assert "/city" in shown
    assert SECRET in shown
    assert "Rome" in shown
    assert "/days" not in shown
    assert "UPSTREAM" in shown
    with tenant_scope(traces.tenant.id):
        viewed = Action.objects.filter(tenant=traces.tenant, verb="call.view")
        booked = Invocation.objects.for_tenant(traces.tenant.id).filter(tool_name="book")
        assert {each.subject for each in viewed} == {str(each.invocation_id) for each in booked}


@pytest.mark.parametrize("role", ["viewer", "auditor"])
def test_changes_are_hidden_from_others(traces: Cast, role: str) -> None:
    page = signed_in(getattr(traces, role)).get("/traces/a/compare?with=b&pair=3")
    shown = text(page.content.decode())
    assert SECRET not in shown
    assert "Rome" not in shown
    assert "Arguments and results are hidden" in shown
    with tenant_scope(traces.tenant.id):
        assert not Action.objects.filter(tenant=traces.tenant, verb="call.view").exists()


def test_an_auditor_sees_the_changes_of_calls_that_they_revealed(traces: Cast) -> None:
    client = signed_in(traces.auditor)
    with tenant_scope(traces.tenant.id):
        booked = list(Invocation.objects.for_tenant(traces.tenant.id).filter(tool_name="book"))
    for call in booked:
        address = f"/calls/{call.started_on}/{call.invocation_id}/reveal"
        client.post(address, {"reason": "complaint 7"})
    shown = text(client.get("/traces/a/compare?with=b&pair=3").content.decode())
    assert SECRET in shown


def test_equal_calls_have_no_changes(traces: Cast) -> None:
    page = signed_in(traces.editor).get("/traces/a/compare?with=a&pair=3").content.decode()
    assert "Arguments, results and errors are equal" in text(page)


@pytest.mark.parametrize("other", ["nothing", "%00", "b%00"])
def test_an_unknown_trace_is_named(traces: Cast, other: str) -> None:
    answer = signed_in(traces.viewer).get(f"/traces/a/compare?with={other}")
    assert answer.status_code == 200
    assert "No trace has the id" in text(answer.content.decode())
    assert signed_in(traces.viewer).get("/traces/nothing/compare").status_code == 404


def test_a_trace_leads_here(traces: Cast) -> None:
    client = signed_in(traces.viewer)
    page = client.get("/traces/a").content.decode()
    (address,) = re.findall(r'href="(/traces/a/compare)"', page)
    assert "Which other trace?" in text(client.get(address).content.decode())
