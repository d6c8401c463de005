"""People at `/mcp/<tenant>` with access tokens: what they see, and what is on record."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from audit.mcp.own_calls import OWN_CALLS, OwnCall, _events_of
from audit.work.mcp_uses import record_uses
from tenants.identity.published import KEPT_KEYS
from tenants.identity.resource import PersonIdentity
from tenants.models import Action, Role, User
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, send_events
from tests.support.identity.access_tokens import (
    access_token,
    agent_with,
    let_clients_in,
    make_member,
)
from tests.support.identity.hostile_provider import HostileProvider, opened_provider
from tests.support.mcp_agent import Agent

CANARY = "payload9e41"


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[HostileProvider]:
    KEPT_KEYS.forget()
    with opened_provider(monkeypatch) as one:
        yield one


def person(
    cast: Cast, provider: HostileProvider, role: Role, *, mcp: str = "payloads", **claims: Any
) -> tuple[User, Agent]:
    """A member with this role, and the client of this person."""
    row = let_clients_in(cast.tenant, provider, mcp=mcp)
    user = make_member(row, "ada", role)
    return user, agent_with(access_token(provider, cast.tenant, **claims), cast.tenant)


def send_a_call(cast: Cast) -> str:
    call = make_call(args={"q": CANARY})
    send_events(cast.tenant, call)
    return str(call[0]["invocation_id"])


def actions(cast: Cast, verb: str) -> list[Action]:
    with tenant_scope(cast.tenant.pk):
        return list(Action.objects.filter(tenant=cast.tenant, verb=verb).order_by("at", "id"))


@pytest.mark.parametrize(
    ("role", "mcp", "scope", "sees"),
    [
        (Role.EDITOR, "payloads", "read payloads", True),
        (Role.ADMIN, "payloads", "read payloads", True),
        (Role.VIEWER, "payloads", "read payloads", False),
        (Role.AUDITOR, "payloads", "read payloads", False),
        (Role.EDITOR, "payloads", "read", False),
        (Role.EDITOR, "read", "read payloads", False),
    ],
)
def test_payloads_need_role_scope_and_setting(
    acme: Cast, provider: HostileProvider, role: Role, mcp: str, scope: str, sees: bool
) -> None:
    pk = send_a_call(acme)
    _, agent = person(acme, provider, role, mcp=mcp, scope=scope)
    result = agent.call("get_call", invocation_id=pk)
    assert (CANARY in str(result)) == sees
    assert ("Payloads and texts" in str(result)) != sees
    assert len(actions(acme, "payload.read")) == (1 if sees else 0)
    found = agent.use("search_calls", q=f'args.q:"{CANARY}"') if sees else None
    assert found is None or len(found["untrusted"]["items"]) == 1
    if not sees:
        assert agent.call("search_calls", q=f'args.q:"{CANARY}"')["isError"]


def test_uses_are_on_record_with_the_person(acme: Cast, provider: HostileProvider) -> None:
    pk = send_a_call(acme)
    user, agent = person(acme, provider, Role.EDITOR)
    for _ in range(3):
        agent.use("violations")
    agent.use("get_call", invocation_id=pk)
    with_key = Agent(acme.tenant, name="program")
    with_key.use("violations")
    record_uses(acme.tenant.id, timezone.now() + timedelta(minutes=3))
    uses = actions(acme, "mcp.use")
    by_person = [one for one in uses if one.user_id == user.pk]
    assert {one.user_name for one in by_person} == {user.username}
    assert {one.subject for one in by_person} == {"violations", "get_call"}
    violations = [one for one in by_person if one.subject == "violations"]
    assert sum(one.details["count"] for one in violations) == 3
    assert len(violations) <= 2, "one for each minute"
    by_key = [one for one in uses if one.user_id is None]
    assert [one.details["clients"] for one in by_key] == [["program"]]
    [read] = actions(acme, "payload.read")
    assert (read.user_name, read.user_id, read.subject) == (
        user.username,
        user.pk,
        f"/mcp get_call {pk}",
    )


def test_calls_of_people_have_a_pseudonym_as_principal(acme: Cast) -> None:
    who = PersonIdentity(acme.tenant.pk, acme.editor)
    call = OwnCall(who, "alerts", {}, None, "claude", "1", timezone.now(), 0.1)
    start, _ = _events_of(call, "mcp-x", 1)
    assert start["context"] == {"principal": f"user {acme.editor.pk}"}
    assert acme.editor.username not in str(start)
    OWN_CALLS.add(call)  # without a tenant for them nothing happens


def test_prompt_is_counted_and_limited_likewise(acme: Cast, provider: HostileProvider) -> None:
    pk = send_a_call(acme)
    user, agent = person(acme, provider, Role.VIEWER)
    asked = {"name": "mend_failure", "arguments": {"invocation_id": pk}}
    assert CANARY not in str(agent.ask("prompts/get", asked))
    record_uses(acme.tenant.id, timezone.now() + timedelta(minutes=3))
    assert [one.user_id for one in actions(acme, "mcp.use")] == [user.pk]
