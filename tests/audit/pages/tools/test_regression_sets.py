"""Regression sets: made of a label, judged by replays, erased with their calls, and removed."""

import json
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from audit.models import RegressionCase, RegressionSet
from audit.retention import retention
from audit.work import regression
from audit.work.replay.job import run_slice as run_replay
from tenants.models import Action, Scope, TenantSetting
from tenants.scope import tenant_scope
from tests.support.api_client import Program, program
from tests.support.erasures import erase
from tests.support.factories import Cast, make_call, send_events
from tests.support.hostile_text import XSS
from tests.support.pages import signed_in
from tests.support.registered_tools import register_tool
from tools_registry.models import Tool

CITY = {"type": "object", "properties": {"city": {"type": "string"}}}
NARROW = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 4}}}
CELSIUS = {"type": "object", "required": ["celsius"]}
BODY = {"label": "regression", "reason": "a bug that came back"}


def call(cast: Cast, city: str, output: Any, *, label: str = "regression", **members: Any) -> str:
    """Send a call, and write a note with a label about it; its id."""
    envelope = {"status": "ok", "data": output, "meta": {}}
    events = make_call(tool_name="get_weather", args={"city": city}, output=envelope, **members)
    send_events(cast.tenant, events)
    pk = str(events[0]["invocation_id"])
    note = {"about": "call", "invocation_id": pk, "label": label}
    program(cast.tenant, Scope.OPERATE).do("notes", note)
    return pk


@pytest.fixture
def tool(acme: Cast) -> Tool:
    """A published tool, for whose output a member is required."""
    return register_tool(acme, input_schema=CITY, output_schema=CELSIUS)


@pytest.fixture
def api(acme: Cast) -> Program:
    """A program with all scopes."""
    return program(acme.tenant)


def cases(cast: Cast) -> list[RegressionCase]:
    """The stored cases."""
    with tenant_scope(cast.tenant.id):
        stored = RegressionCase.objects.for_tenant(cast.tenant.id)
        return list(stored.order_by("invocation_id"))


def replayed(api: Program, tool: Tool, schema: Any) -> Any:
    """What a replay of schemas says of the set."""
    schemas = {"input_schema": schema, "output_schema": CELSIUS}
    started = api.do(f"tools/{tool.pk}/replays", {"range": "1m", "schemas": schemas})
    while run_replay(api.tenant.id, UUID(started["id"])):
        pass
    return api.get(f"tools/{tool.pk}/replays/{started['id']}")


def test_set_is_made_of_labelled_calls_with_what_they_are_expected_to_break(
    acme: Cast, tool: Tool, api: Program
) -> None:
    path = f"tools/{tool.pk}/regression-set"
    assert api.get(path) == {"versions": [], "cases": []}
    assert api.refused(path, BODY) == (409, "conflict")  # no call has the label
    passing, broken = call(acme, "Rom", {"celsius": 1}), call(acme, "Bonn", {"hot": True})
    call(acme, "Paris", {}, label="other")
    made = api.do(path, BODY)
    (version,) = made["versions"]
    assert (version["number"], version["case_count"], version["judged_by"]) == (1, 2, 1)
    by_id = {one["invocation_id"]: one for one in made["cases"]}
    assert by_id[passing]["violations"] == []
    (violation,) = by_id[broken]["violations"]
    assert (violation["side"], violation["code"]) == ("output", "MISSING_REQUIRED")
    assert all(one["judged"] == ["args", "output"] for one in made["cases"])
    assert "Bonn" not in json.dumps(made)  # no payload
    with tenant_scope(acme.tenant.id):
        action = Action.objects.filter(verb="regression-set.make").get()
    assert action.details["reason"] == BODY["reason"]
    assert (action.details["cases"], action.details["number"]) == (2, 1)


def test_replay_judges_the_set_whatever_calls_it_reads(
    acme: Cast, tool: Tool, api: Program
) -> None:
    call(acme, "Rom", {"celsius": 1})
    long = call(acme, "London", {"celsius": 1})
    assert replayed(api, tool, NARROW)["regression"] is None
    api.do(f"tools/{tool.pk}/regression-set", BODY)
    same = replayed(api, tool, CITY)["regression"]
    assert same == {
        "number": 1,
        "as_expected": 2,
        "differing": 0,
        "not_judged": 0,
        "differences": [],
    }
    narrow = replayed(api, tool, NARROW)
    assert (narrow["regression"]["differing"], narrow["regression"]["as_expected"]) == (1, 1)
    (difference,) = narrow["regression"]["differences"]
    assert (difference["invocation_id"], difference["side"]) == (long, "args")
    assert difference["new"] == [["$.city", "CONSTRAINT_VIOLATION"]]
    assert difference["gone"] == []
    page = signed_in(acme.viewer).get(f"/tools/{tool.pk}/replays/{narrow['id']}").content.decode()
    assert "CONSTRAINT_VIOLATION" in page.split('id="regression"')[1]
    assert "London" not in page


def test_expected_violation_that_is_gone_is_a_difference(
    acme: Cast, tool: Tool, api: Program
) -> None:
    call(acme, "Bonn", {"hot": True})
    api.do(f"tools/{tool.pk}/regression-set", BODY)
    schemas = {"input_schema": CITY, "output_schema": None}
    started = api.do(f"tools/{tool.pk}/replays", {"range": "1m", "schemas": schemas})
    run_replay(acme.tenant.id, UUID(started["id"]))
    regressions = api.get(f"tools/{tool.pk}/replays/{started['id']}")["regression"]
    ((path, code),) = regressions["differences"][0]["gone"]
    assert (path, code) == ("$.celsius", "MISSING_REQUIRED")


def test_each_change_is_a_version_and_only_the_newest_has_copies(
    acme: Cast, tool: Tool, api: Program
) -> None:
    path = f"tools/{tool.pk}/regression-set"
    first = call(acme, "Rom", {"celsius": 1})
    api.do(path, BODY)
    second = call(acme, "Bonn", {"celsius": 1}, label="fresh")
    api.do(path, BODY | {"label": "fresh"})
    assert [str(one.invocation_id) for one in cases(acme)] == [second]
    made = api.do(path, BODY)
    assert [one["number"] for one in made["versions"]] == [3, 2, 1]
    assert [one["invocation_id"] for one in made["cases"]] == [first]
    removed = api.do(f"{path}/remove", {"reason": "no longer needed"})
    assert (removed["versions"][0]["label"], removed["cases"]) == ("", [])
    assert cases(acme) == []
    assert api.refused(f"{path}/remove", {"reason": "again"}) == (409, "conflict")
    assert replayed(api, tool, NARROW)["regression"] is None


@pytest.mark.slow
def test_copies_outlive_their_payloads_and_not_an_erasure(
    acme: Cast, tool: Tool, api: Program
) -> None:
    path = f"tools/{tool.pk}/regression-set"
    kept = call(acme, "London", {"celsius": 1})
    gone = call(acme, "Leeds", {"celsius": 1}, trace_id="gone")
    api.do(path, BODY)
    with tenant_scope(acme.tenant.id):
        TenantSetting.objects.update_or_create(tenant=acme.tenant, defaults={"payload_days": 1})
    while retention.run_slice(acme.tenant.id, timezone.now() + timedelta(days=3)):
        pass
    assert api.get(f"calls/{kept}")["end"]["event"] is None
    made = api.do(path, BODY)  # the copies are taken over
    assert made["versions"][0]["case_count"] == 2

    assert erase(acme, "trace:gone").erased_calls == 1
    stored = {str(one.invocation_id): one for one in cases(acme)}
    assert (stored[gone].args, stored[gone].output, stored[gone].is_erased) == ("", "", True)
    assert not stored[kept].is_erased
    regressions = replayed(api, tool, NARROW)["regression"]
    assert (regressions["differing"], regressions["not_judged"]) == (1, 1)
    page = signed_in(acme.editor).get(f"/tools/{tool.pk}/regression-set").content.decode()
    assert "erased" in page
    again = api.do(path, BODY)
    assert [one["invocation_id"] for one in again["cases"]] == [kept]


def test_cases_do_not_outlive_their_calls_in_the_index(
    acme: Cast, tool: Tool, api: Program
) -> None:
    call(acme, "London", {"celsius": 1})
    api.do(f"tools/{tool.pk}/regression-set", BODY)
    with tenant_scope(acme.tenant.id):
        setting = {"index_days": retention.INDEX_DAYS_MIN, "payload_days": 1}
        TenantSetting.objects.update_or_create(tenant=acme.tenant, defaults=setting)
    while retention.run_slice(acme.tenant.id, timezone.now() + timedelta(days=400)):
        pass
    assert cases(acme) == []
    with tenant_scope(acme.tenant.id):
        assert RegressionSet.objects.for_tenant(acme.tenant.id).count() == 1


def test_limits_say_why_no_set_is_made(
    acme: Cast, tool: Tool, api: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"tools/{tool.pk}/regression-set"
    call(acme, "Rom", {"celsius": 1})
    call(acme, "Bonn", {"celsius": 1})
    for name in ("CASES_MAX", "COPIES_MAX_BYTES"):
        with monkeypatch.context() as limited:
            limited.setattr(regression, name, 1)
            assert api.refused(path, BODY) == (409, "conflict")
    for wrong in ({"label": "a b"}, {"label": ""}, {"reason": "  x  "}, {"other": 1}):
        assert api.refused(path, BODY | wrong) == (400, "malformed")
    draft = program(acme.tenant).do("tools/create", {"name": "unpublished"})["id"]
    assert api.refused(f"tools/{draft}/regression-set", BODY) == (409, "conflict")
    assert cases(acme) == []


def test_time_for_judging_is_limited(
    acme: Cast, tool: Tool, api: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    call(acme, "Rom", {"celsius": 1})
    api.do(f"tools/{tool.pk}/regression-set", BODY)
    monkeypatch.setattr(regression, "JUDGING_SECONDS", -1.0)
    assert replayed(api, tool, CITY)["regression"]["not_judged"] == 1


def test_key_needs_both_scopes_and_people_the_role(acme: Cast, tool: Tool) -> None:
    path = f"tools/{tool.pk}/regression-set"
    call(acme, "Rom", {"celsius": 1})
    for scope in (Scope.PAYLOADS, Scope.REGISTRY):
        assert program(acme.tenant, scope).refused(path, BODY) == (403, "missing_scope")
    program(acme.tenant, Scope.PAYLOADS, Scope.REGISTRY).do(path, BODY)
    page = f"/tools/{tool.pk}/regression-set"
    for user in (acme.viewer, acme.auditor):
        assert signed_in(user).get(page).status_code == 200
        assert signed_in(user).post(f"{page}/make", BODY).status_code == 403
        assert signed_in(user).post(f"{page}/remove", BODY).status_code == 403


def test_editor_makes_and_removes_a_set_on_its_page(acme: Cast, tool: Tool) -> None:
    editor = signed_in(acme.editor)
    page = f"/tools/{tool.pk}/regression-set"
    assert "Make a set" in editor.get(page).content.decode()
    none = editor.post(f"{page}/make", BODY)
    assert (none.status_code, "No call of this tool" in none.content.decode()) == (422, True)
    call(acme, "London", {"hot": True})
    assert editor.post(f"{page}/make", BODY).status_code == 302
    shown = editor.get(page).content.decode()
    assert "MISSING_REQUIRED" in shown
    assert "1 case" in shown
    assert "London" not in shown
    assert editor.post(f"{page}/make", {"label": "x"}).status_code == 422  # no reason
    editor.post(f"{page}/remove", {"reason": ""})
    assert len(cases(acme)) == 1
    editor.post(f"{page}/remove", {"reason": "not needed"})
    assert cases(acme) == []


def test_hostile_payloads_are_copied_and_shown_harmless(
    acme: Cast, tool: Tool, api: Program
) -> None:
    register_tool(
        acme,
        input_schema=CITY | {"additionalProperties": False},
        output_schema=CELSIUS,
        on_collision="replace",
    )
    events = make_call(
        tool_name="get_weather",
        args={"city": "a\x00b\ud800", XSS[1]: 1, "n": 1e300},
        output={"status": "ok", "data": {"celsius": XSS[1]}, "meta": {}},
    )
    send_events(acme.tenant, events)
    pk = str(events[0]["invocation_id"])
    program(acme.tenant, Scope.OPERATE).do(
        "notes", {"about": "call", "invocation_id": pk, "label": "regression"}
    )
    made = api.do(f"tools/{tool.pk}/regression-set", BODY)
    assert any(one["side"] == "args" for one in made["cases"][0]["violations"])
    page = signed_in(acme.editor).get(f"/tools/{tool.pk}/regression-set").content.decode()
    assert XSS[1] not in page
    regressions = replayed(api, tool, CITY)["regression"]
    assert regressions["differing"] == 1
    assert regressions["differences"][0]["gone"]
