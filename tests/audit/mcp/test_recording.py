"""Uses of `/mcp` on record: one action for each key, tool and minute, and each payload read."""

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils import timezone

from audit.ledger.actions import enter_all_actions
from audit.models import McpUse
from audit.work.mcp_uses import CLIENTS_MAX, count_use, digest_of, record_uses
from tenants.keys import ApiKeyIdentity
from tenants.models import Action, ApiKey
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, send_events
from tests.support.mcp_agent import WITH_PAYLOADS, Agent

AT = datetime(2026, 11, 20, 10, 0, 30, tzinfo=UTC)
LATER = AT + timedelta(minutes=1)


def identity_of(agent: Agent) -> ApiKeyIdentity:
    with tenant_scope(agent.tenant.id):
        key = ApiKey.objects.get(tenant=agent.tenant, name="agent's key")
    return ApiKeyIdentity(agent.tenant.id, key.key_id, key.pk)


def actions(agent: Agent, verb: str = "mcp.use") -> list[Action]:
    with tenant_scope(agent.tenant.id):
        return list(Action.objects.filter(tenant=agent.tenant, verb=verb).order_by("at", "id"))


def test_uses_of_a_minute_are_one_action_with_count_and_digest(acme: Cast) -> None:
    agent = Agent(acme.tenant)
    key = identity_of(agent)
    queries: list[dict[str, Any]] = [{"q": "tool:a"}, {"q": "tool:b"}, {}]
    for n, query in enumerate(queries):
        count_use(key, "search_calls", query, "claude", AT + timedelta(seconds=n))
    count_use(key, "latency", {}, "", AT)
    count_use(key, "search_calls", {}, "cursor", AT + timedelta(minutes=1))
    assert record_uses(acme.tenant.id, AT + timedelta(seconds=30)) == 0, "the minute is not over"
    assert record_uses(acme.tenant.id, LATER) == 2
    assert record_uses(acme.tenant.id, LATER) == 0
    latency, search = actions(agent)
    digest = digest_of(queries[0])
    for query in queries[1:]:
        digest = hashlib.sha256((digest + digest_of(query)).encode()).hexdigest()
    assert search.subject == "search_calls"
    assert search.user_name == f"API key agent's key ({key.key_id})"
    assert search.details == {
        "minute": "2026-11-20T10:00:00+00:00",
        "count": 3,
        "digest": digest,
        "clients": ["claude"],
    }
    assert (latency.subject, latency.details["clients"]) == ("latency", ["unnamed"])
    assert record_uses(acme.tenant.id, LATER + timedelta(minutes=2)) == 1
    enter_all_actions(acme.tenant.id)
    assert all(action.ledger_index is not None for action in actions(agent))


def test_a_client_that_changes_its_name_makes_no_more_actions(acme: Cast) -> None:
    agent = Agent(acme.tenant)
    key = identity_of(agent)
    for n in range(20):
        count_use(key, "alerts", {}, f"client {n % 10} \x00" + "x" * 500, AT)
    assert record_uses(acme.tenant.id, LATER) == 1
    [action] = actions(agent)
    assert action.details["count"] == 20
    assert len(action.details["clients"]) == CLIENTS_MAX
    assert all(len(name) <= 100 for name in action.details["clients"])


def test_every_use_of_a_tool_is_counted_even_a_refused_one(acme: Cast) -> None:
    agent = Agent(acme.tenant, name="coder")
    for _ in range(3):
        agent.use("violations")
    assert agent.call("violations", side="neither")["isError"]
    agent.ask("tools/list")
    record_uses(acme.tenant.id, timezone.now() + timedelta(minutes=3))
    stored = actions(agent)  # two, if a minute ended meanwhile
    assert {action.subject for action in stored} == {"violations"}
    assert sum(action.details["count"] for action in stored) == 4
    assert all(action.details["clients"] == ["coder"] for action in stored)
    with tenant_scope(acme.tenant.id):
        assert not McpUse.objects.for_tenant(acme.tenant.id).exists()


def test_keys_and_tenants_are_counted_apart(acme: Cast, globex: Cast) -> None:
    ours, theirs = Agent(acme.tenant), Agent(globex.tenant)
    for agent in (ours, theirs):
        count_use(identity_of(agent), "repeats", {}, "c", AT)
    assert record_uses(acme.tenant.id, LATER) == 1
    assert actions(theirs) == []
    assert record_uses(globex.tenant.id, LATER) == 1
    assert len(actions(ours)) == len(actions(theirs)) == 1


def test_each_payload_that_is_read_is_on_record(acme: Cast) -> None:
    first, second = make_call(), make_call()
    send_events(acme.tenant, [*first, *second])
    agent = Agent(acme.tenant, WITH_PAYLOADS)
    ids = [first[0]["invocation_id"], second[0]["invocation_id"]]
    for pk in ids:
        agent.use("get_call", invocation_id=pk)
    subjects = {action.subject for action in actions(agent, "payload.read")}
    assert subjects == {f"/mcp get_call {pk}" for pk in ids}
    blind = Agent(acme.tenant, name="blind")
    before = len(actions(agent, "payload.read"))
    blind.use("get_call", invocation_id=ids[0])
    assert len(actions(agent, "payload.read")) == before, "nothing was shown"
