"""The dimensions of calls: from events, in queries, suggestions, answers and a rebuilt index."""

from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from django.utils import timezone

from audit.index.reindex import reindex
from audit.models import Invocation
from audit.queries.call_values import known_values
from audit.queries.dimensions import DIMENSIONS
from tenants.keys import create_key
from tenants.models import Scope
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, send_events
from tests.support.ledger_log import as_owner
from tests.support.recount import assert_consistent

pytestmark = pytest.mark.usefixtures("clear_principals")

CONTEXT = {
    "agent": "concierge",
    "agent_version": "2",
    "model": "m-1",
    "provider": "openai",
    "principal": "~1.abc",
    "environment": "production",
    "service": "shop",
    "service_version": "7",
    "conversation": "c-7",
}
MCP = {
    "server": {"name": "weather", "version": "1"},
    "client": {"name": "desk"},
    "protocol_version": "2026-07-28",
}
OUTER = UUID("018fd0a2-7c1e-7d52-9b7c-5a4c3f2e1d0b")


@pytest.fixture
def calls(acme: Cast) -> Cast:
    """Three calls: one that an agent makes, one inside of it, and one of nobody."""
    outer: dict[str, Any] = {
        "tool_name": "plan",
        "invocation_id": str(OUTER),
        "context": CONTEXT,
        "mcp": MCP,
    }
    inner: dict[str, Any] = {"context": {"agent": "helper", "service_version": "9"}}
    send_events(
        acme.tenant,
        [
            *make_call(**outer),
            *make_call(
                tool_name="search", parent_invocation_id=str(OUTER), trace_id="other", **inner
            ),
            *make_call(tool_name="alone"),
        ],
    )
    return acme


def found(cast: Cast, query: str) -> list[dict[str, Any]]:
    token = create_key(cast.tenant, "reader", [Scope.READ])[1]
    answer = Client().get(
        "/api/v1/calls", {"q": query}, headers={"Authorization": f"Bearer {token}"}
    )
    assert answer.status_code == 200, answer.content
    return sorted(answer.json()["calls"], key=lambda each: str(each["tool_name"]))


@pytest.mark.parametrize(
    ("query", "tools"),
    [
        ("agent:concierge agent-version:2 service:shop environment:prod*", ["plan"]),
        ("principal:~1.*", ["plan"]),
        ("conversation:c-7", ["plan"]),
        ("run:c-7 conversation:c-7", ["plan"]),
        ("run:c-8 conversation:c-7", []),
        ("agent-version:9", ["search"]),
        ("caller:plan", ["search"]),
        ("caller:concierge", ["plan"]),
        ("caller:helper", []),
        ("caller:*", ["plan", "search"]),
        ("NOT caller:*", ["alone"]),
        ("server:weather* client:desk protocol:2026*", ["plan"]),
    ],
)
def test_dimensions_can_be_asked_for(calls: Cast, query: str, tools: list[str]) -> None:
    assert [each["tool_name"] for each in found(calls, query)] == tools


def test_answer_has_every_dimension(calls: Cast) -> None:
    (plan,) = found(calls, "tool:plan")
    assert {name: plan[name] for name in DIMENSIONS.values()} == {
        **{name: CONTEXT[name] for name in ("agent", "agent_version", "model", "provider")},
        **{name: CONTEXT[name] for name in ("service", "environment", "principal")},
        "run_id": "c-7",
        "mcp_server": "weather 1",
        "mcp_client": "desk",
        "mcp_protocol": "2026-07-28",
    }


@pytest.mark.parametrize("name", DIMENSIONS)
def test_known_values_are_suggested(calls: Cast, name: str) -> None:
    with tenant_scope(calls.tenant.id):
        (plan,) = Invocation.objects.filter(tool_name="plan")
        known = known_values(name, now=timezone.now())
    assert getattr(plan, DIMENSIONS[name]) in known[name]


@pytest.mark.slow
def test_reindex_fills_the_dimensions_of_calls_that_an_older_version_stored(calls: Cast) -> None:
    as_owner(
        "UPDATE invocation SET agent_version = NULL, environment = NULL, service = NULL,"
        " principal = NULL, run_id = NULL WHERE tenant_id = %s",
        [calls.tenant.id],
    )
    reindex(calls.tenant.id, repair=True, progress=lambda done, size: None)
    (plan,) = found(calls, "tool:plan")
    assert (plan["agent_version"], plan["service"], plan["run_id"]) == ("2", "shop", "c-7")
    assert_consistent(calls.tenant)
