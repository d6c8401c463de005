"""`/mcp/<tenant>` by tenant, role and token: two tenants with the same company's provider."""

import json
from collections.abc import Iterator

import pytest

from audit.mcp.tools import TOOLS
from tenants.identity.published import KEPT_KEYS
from tenants.models import Role
from tests.support.api_record import PAYLOAD, Record, make_record
from tests.support.factories import make_cast
from tests.support.identity.access_tokens import (
    access_token,
    agent_with,
    let_clients_in,
    make_member,
)
from tests.support.identity.hostile_provider import HostileProvider, opened_provider
from tests.support.mcp_agent import Agent, arguments_about

pytestmark = pytest.mark.slow
_SEE_PAYLOADS = {Role.EDITOR, Role.ADMIN}


@pytest.fixture(scope="module")
def provider() -> Iterator[HostileProvider]:
    KEPT_KEYS.forget()
    with pytest.MonkeyPatch.context() as patch, opened_provider(patch) as one:
        yield one


@pytest.fixture(scope="module")
def records(provider: HostileProvider) -> tuple[Record, Record]:
    """Two tenants with something to read, whose provider knows a person of each role."""
    both = make_record(make_cast("acme")), make_record(make_cast("globex"))
    for record in both:
        row = let_clients_in(record.cast.tenant, provider, name="Company")
        for role in Role:
            make_member(row, role.value, role)
    return both


def agent_of(provider: HostileProvider, record: Record, subject: str) -> Agent:
    return agent_with(access_token(provider, record.cast.tenant, sub=subject), record.cast.tenant)


@pytest.mark.parametrize("role", Role)
def test_each_role_sees_its_own_tenant_only(
    provider: HostileProvider, records: tuple[Record, Record], role: Role
) -> None:
    own, other = records
    agent = agent_of(provider, own, role.value)
    seen = []
    for name in TOOLS:
        result = agent.call(name, **arguments_about(own, name))
        assert not result["isError"], (name, result)
        seen.append(json.dumps(result))
    assert any(PAYLOAD in text for text in seen) == (role in _SEE_PAYLOADS)
    foreign = [str(one) for one in (other.failed, other.open, other.tool, other.cast.tenant.pk)]
    for name in TOOLS:
        asked = arguments_about(other, name)
        answer = json.dumps(agent.call(name, **asked))
        assert not [pk for pk in foreign if pk in answer and pk not in str(asked)], name
    by_id = agent.call("get_call", invocation_id=str(other.failed))
    assert (by_id["isError"], "not found" in by_id["content"][0]["text"]) == (True, True)


@pytest.mark.parametrize("role", Role)
def test_token_opens_no_other_tenant(
    provider: HostileProvider, records: tuple[Record, Record], role: Role
) -> None:
    own, other = records
    token = access_token(provider, own.cast.tenant, sub=role.value)
    refused = agent_with(token, other.cast.tenant).send("tools/list")
    assert refused.status_code == 401
    # Nor does one that is for the other tenant, of a person whom only this one knows.
    named = access_token(provider, other.cast.tenant, sub=f"{role.value} of another")
    assert agent_with(named, other.cast.tenant).send("tools/list").status_code == 403
