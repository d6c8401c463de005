"""The guide through the first steps: what it detects, for whom, and what it costs."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from audit import sql
from audit.alerts.starter import add_starter_rules
from audit.pages.first_steps.steps import Step
from tenants.admin_acts import invite_member
from tenants.keys import create_key, revoke_key
from tenants.models import Action, ApiKey, Membership, Role, Scope
from tenants.scope import tenant_scope
from tests.support.contracts import make_contract
from tests.support.factories import Cast, make_call, send_events
from tests.support.pages import HOSTILE, PARTIAL, signed_in, text
from tools_registry.changes import Publisher
from tools_registry.schemas import ToolContract
from tools_registry.versions import register_contracts

ADDRESS = "/first-steps/"
TOOL = ToolContract.model_validate(make_contract())
EVERY_STEP = ("key", "program", "call", "schema", "alert", "invite")


def done(client: Client, address: str = ADDRESS) -> set[str]:
    """The steps that are shown as done."""
    steps: list[Step] = client.get(address).context["steps"]
    return {name for name, step in zip(EVERY_STEP, steps, strict=True) if step.is_done}


@pytest.mark.slow
def test_each_step_notices_by_itself_that_it_was_done(acme: Cast) -> None:
    with tenant_scope(acme.tenant.id):
        Membership.objects.filter(tenant=acme.tenant).exclude(user=acme.admin).delete()
    client = signed_in(acme.admin)
    assert done(client) == done(client, "/") == set()

    key = create_key(acme.tenant, "reader", [Scope.READ])[1]
    Client().get("/api/v1/calls", headers={"Authorization": f"Bearer {key}"})
    assert done(client) == set()  # this key cannot send events
    stored, key = create_key(acme.tenant, "sender", [Scope.INGEST])
    assert done(client) == {"key"}

    send_events(acme.tenant, [{"type": "nonsense"}], key=key)
    assert done(client) == done(client, "/") == {"key", "program"}
    send_events(acme.tenant, make_call(tool_name="lookup", trace_id="t/1"), key=key)
    assert done(client) == {"key", "program", "call"}

    with tenant_scope(acme.tenant.id):
        register_contracts(acme.tenant, [TOOL], Publisher(key_id="key"))
    assert done(client) == {"key", "program", "call", "schema"}
    with tenant_scope(acme.tenant.id):
        add_starter_rules(acme.tenant, acme.admin, datetime.now(UTC))
    assert done(client) == {"key", "program", "call", "schema", "alert"}
    with tenant_scope(acme.tenant.id):
        invite_member(acme.tenant, acme.admin, "grace", Role.VIEWER)
    assert done(client) == set(EVERY_STEP)
    assert "All steps are done" in text(client.get(ADDRESS).content.decode())

    with tenant_scope(acme.tenant.id):
        revoke_key(stored)
    assert done(client) == set(EVERY_STEP) - {"key"}


def test_other_tenants_steps_are_not_counted(acme: Cast, globex: Cast) -> None:
    send_events(globex.tenant, make_call())
    with tenant_scope(globex.tenant.id):
        register_contracts(globex.tenant, [TOOL], Publisher(key_id="key"))
        add_starter_rules(globex.tenant, globex.admin, datetime.now(UTC))
    assert done(signed_in(acme.admin)) == {"invite"}  # `acme` has a member of each role


def test_overview_shows_the_guide_until_a_call_arrives(acme: Cast) -> None:
    client = signed_in(acme.viewer)
    page = client.get("/").content.decode()
    assert "No tool calls yet" in page
    assert 'hx-get="/first-steps/"' in page

    send_events(acme.tenant, make_call(trace_id="the-first"))

    assert "steps" not in client.get("/").context
    part = client.get(ADDRESS, headers=PARTIAL).content.decode()
    assert "<html" not in part
    assert "Calls arrive" in part
    assert "/traces/the-first?call=" in part
    assert "hx-trigger" not in part  # it has seen what it waited for


@pytest.mark.parametrize("name", HOSTILE)
def test_name_of_the_first_tool_is_text(name: str, acme: Cast) -> None:
    send_events(acme.tenant, make_call(tool_name=name.replace("\0", "") or "x"))
    page = signed_in(acme.viewer).get(ADDRESS).content.decode()
    assert "<script>alert" not in page
    assert "<img src=x" not in page


def test_key_is_made_in_place_and_shown_once(acme: Cast) -> None:
    client = signed_in(acme.admin)
    (address,) = re.findall(
        r'<form method="post" action="(/first-steps/.*?)"', client.get("/").content.decode()
    )

    page = text(client.post(address).content.decode())

    (key,) = re.findall(r"TOOLTRAIL_API_KEY=(tt_\w+)", page)
    assert "export TOOLTRAIL_URL=http://testserver" in page
    send_events(acme.tenant, make_call(), key=key)
    with tenant_scope(acme.tenant.id):
        stored = ApiKey.objects.get(tenant=acme.tenant, name="First program")
        assert stored.scopes == [Scope.INGEST, Scope.REGISTRY]
        assert stored.owner == acme.admin
        assert Action.objects.filter(tenant=acme.tenant, verb="key.create").count() == 1
    again = client.get(address, follow=True)
    assert again.redirect_chain == [(ADDRESS, 302)]
    assert key not in again.content.decode()


@pytest.mark.parametrize("role", Role)
def test_steps_lead_where_the_reader_may_go_and_say_who_else_can(role: Role, acme: Cast) -> None:
    client = signed_in(getattr(acme, role.value))
    response = client.get(ADDRESS)
    steps = dict(zip(EVERY_STEP, response.context["steps"], strict=True))
    for step in steps.values():
        assert not (step.address and step.who)
        if step.address.startswith("/"):
            assert client.get(step.address).status_code == 200, step
    may_not = {name for name, step in steps.items() if step.who}
    assert (
        may_not
        == {
            Role.VIEWER: {"key", "schema", "alert"},
            Role.AUDITOR: {"key", "schema", "alert"},
            Role.EDITOR: {"key"},
            Role.ADMIN: set(),
        }[role]
    )
    assert ("Create API key" in response.content.decode()) == (role is Role.ADMIN)
    assert ("Ask an admin" in response.content.decode()) == (role is not Role.ADMIN)


def test_guide_costs_one_statement_and_an_overview_with_calls_none(acme: Cast) -> None:
    client = signed_in(acme.viewer)
    client.get(ADDRESS)
    with CaptureQueriesContext(connection) as captured:
        client.get("/")
    assert sum("'ingest' = ANY (scopes)" in each["sql"] for each in captured) == 1
    send_events(acme.tenant, make_call())
    with CaptureQueriesContext(connection) as captured:
        client.get("/")
    assert not any("'ingest' = ANY (scopes)" in each["sql"] for each in captured)


def test_newest_call_is_read_from_the_end_of_the_index(acme: Cast) -> None:
    parameters: dict[str, Any] = {
        "tenant_id": acme.tenant.id,
        "user_id": 0,
        "now": datetime.now(UTC),
    }
    with tenant_scope(acme.tenant.id), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN {sql.QUERIES['first_steps']}", parameters)
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "Index Scan Backward" in plan, plan
    assert "->  Sort " not in plan, plan
