"""A tool's page: what it shows and permits, comparing contracts, and unregistered tools."""

import re
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from audit.tasks.tenants import keep_tools
from audit.work.sightings import expire_ephemeral, note_tools
from tenants.keys import create_key
from tenants.models import Action, Scope, User
from tenants.scope import tenant_scope
from tests.support.factories import Cast
from tests.support.pages import text
from tests.support.registered_tools import NARROW, register_tool, send_call, weather_contract
from tools_registry import drafts, states
from tools_registry.changes import Publisher, timeline
from tools_registry.models import State, Tool, ToolChange
from tools_registry.tools import describe_tool
from tools_registry.versions import find_version
from tools_registry.views import tools


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def get(user: User, name: str, *args: Any, **query: Any) -> str:
    answer = signed_in(user).get(reverse(name, args=args), query)
    assert answer.status_code == 200
    return answer.content.decode()


def change_state(user: User, tool: Tool, number: int, word: str, **data: str) -> Any:
    return signed_in(user).post(reverse("version_action", args=[tool.pk, number, word]), data)


def state_of(cast: Cast, tool: Tool, number: int) -> State:
    with tenant_scope(cast.tenant.id):
        version = find_version(tool, number)
        assert version is not None
        return states.state_of(version)


# A tool's page


def test_editor_changes_a_version_state_with_a_reason(acme: Cast) -> None:
    register_tool(acme)
    tool = register_tool(acme, description="b", on_collision="replace")
    answer = change_state(acme.editor, tool, 1, "deprecate", reason="Use version 2.")
    assert answer["Location"] == reverse("tool_version", args=[tool.pk, 1])
    assert state_of(acme, tool, 1) == State.DEPRECATED
    page = get(acme.viewer, "tool_detail", tool.pk)
    assert re.search(
        rf"Deprecated version 1 Use version 2\. [^.]* by {acme.editor.username} ", text(page)
    )
    change_state(acme.editor, tool, 1, "make-current")
    with tenant_scope(acme.tenant.id):
        assert Tool.objects.get().current_number == 1
        verbs = [action.verb for action in Action.objects.exclude(user_id=None).order_by("id")]
    assert verbs == ["tool.deprecate", "tool.make-current"]


def test_invalid_state_change_does_nothing(acme: Cast) -> None:
    tool = register_tool(acme)
    change_state(acme.editor, tool, 1, "restore")
    page = signed_in(acme.editor).get(reverse("tool_detail", args=[tool.pk]))
    assert page.status_code == 200
    assert state_of(acme, tool, 1) == State.PUBLISHED
    with tenant_scope(acme.tenant.id):
        assert ToolChange.objects.count() == 1


def test_missing_or_foreign_versions_cannot_be_changed(acme: Cast, globex: Cast) -> None:
    tool, foreign = register_tool(acme), register_tool(globex)
    assert change_state(acme.editor, foreign, 1, "retire").status_code == 404
    assert change_state(acme.editor, tool, 9, "retire").status_code == 404
    assert change_state(acme.editor, tool, 1, "explode").status_code == 404
    assert change_state(acme.viewer, tool, 1, "retire").status_code == 403
    assert state_of(globex, foreign, 1) == State.PUBLISHED


def test_edit_buttons_are_hidden_from_viewers_and_auditors(acme: Cast) -> None:
    tool = register_tool(acme)
    assert "/1/retire" in get(acme.editor, "tool_detail", tool.pk)
    for user in (acme.viewer, acme.auditor):
        page = get(user, "tool_detail", tool.pk)
        assert "/1/retire" not in page
        assert "describe" not in page


def test_timeline_is_paged_from_newest_to_oldest(
    acme: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools, "CHANGES_SHOWN", 3)
    tool = register_tool(acme)
    for number in range(4):
        with tenant_scope(acme.tenant.id):
            describe_tool(tool, {"owner": f"owner {number}"}, Publisher(acme.editor))
    first = get(acme.viewer, "tool_detail", tool.pk)
    assert first.count('class="is-described"') == 3
    assert "?before=3#timeline" in first
    second = get(acme.viewer, "tool_detail", tool.pk, before=3)
    assert second.count('class="is-described"') == 1
    assert 'class="is-published"' in second
    assert "No earlier changes" in get(acme.viewer, "tool_detail", tool.pk, before=1)
    get(acme.viewer, "tool_detail", tool.pk, before="x" * 20)


def test_attempt_links_to_its_diff(acme: Cast) -> None:
    register_tool(acme)
    tool = register_tool(acme, input_schema=NARROW, on_collision="keep")
    with tenant_scope(acme.tenant.id):
        attempt = timeline(tool, size=1)[0]
    page = get(acme.viewer, "tool_detail", tool.pk)
    address = f"?from=1&amp;to={attempt.pk}"
    assert address in page
    shown = get(acme.viewer, "tool_diff", tool.pk, **{"from": "1", "to": str(attempt.pk)})
    assert "breaks callers" in shown
    assert "maxLength" in shown


def test_editor_describes_a_tool_and_invalid_input_changes_nothing(acme: Cast) -> None:
    tool = register_tool(acme)
    description = {
        "owner": "Ann",
        "link": "https://wiki.example/weather",
        "tags": "maps, paid, maps",
        "notes": "Ask first.",
        "meta": '{"tier": 1}',
    }
    address = reverse("tool_describe", args=[tool.pk])
    assert signed_in(acme.editor).post(address, description).status_code == 302
    page = get(acme.viewer, "tool_detail", tool.pk)
    for shown in ("Ann", "https://wiki.example/weather", "Ask first.", ">maps</a>", "tier"):
        assert shown in page
    with tenant_scope(acme.tenant.id):
        assert Tool.objects.get().tags == ["maps", "paid"]
    for wrong in (
        {"link": "javascript:alert(1)"},
        {"meta": "[]"},
        {"meta": '{"a": "\\u0000"}'},
        {"meta": '{"\\ud800": 1}'},
        {"tags": "x" * 60},
    ):
        assert signed_in(acme.editor).post(address, description | wrong).status_code < 500
    with tenant_scope(acme.tenant.id):
        assert ToolChange.objects.filter(kind="described").count() == 1


def test_tool_is_created_without_a_version(acme: Cast) -> None:
    client = signed_in(acme.editor)
    created = client.post(reverse("tool_create"), {"name": "new_one"})
    page = client.get(created["Location"]).content.decode()
    assert "No published version" in page
    assert (
        client.post(reverse("tool_create"), {"name": "new_one"})["Location"] == created["Location"]
    )
    for wrong in ("", " ", "a\nb", "x" * 300):
        answer = client.post(reverse("tool_create"), {"name": wrong})
        assert answer["Location"] == reverse("tool_list")
    with tenant_scope(acme.tenant.id):
        assert Tool.objects.count() == 1


# Two contracts


def test_two_versions_are_compared_in_both_directions(acme: Cast) -> None:
    register_tool(acme)
    tool = register_tool(acme, input_schema=NARROW, on_collision="replace")
    page = get(acme.viewer, "tool_diff", tool.pk)
    for shown in ("from version 1 to version 2", "breaks callers", "$.city", "maxLength"):
        assert shown in page
    back = get(acme.viewer, "tool_diff", tool.pk, **{"from": "2", "to": "1"})
    assert "breaks callers" not in back
    same = get(acme.viewer, "tool_diff", tool.pk, **{"from": "1", "to": "1"})
    assert "No differences" in same


def test_draft_is_compared_like_a_version(acme: Cast) -> None:
    tool = register_tool(acme)
    with tenant_scope(acme.tenant.id):
        drafts.create_draft(tool, weather_contract(input_schema=NARROW), Publisher(acme.editor))
    assert "to=draft" in get(acme.viewer, "tool_detail", tool.pk)
    page = get(acme.viewer, "tool_diff", tool.pk, **{"from": "1", "to": "draft"})
    assert "breaks callers" in page


def test_missing_or_foreign_versions_are_not_compared(acme: Cast, globex: Cast) -> None:
    tool, foreign = register_tool(acme), register_tool(globex)
    client = signed_in(acme.viewer)
    for wrong in ("9", "9" * 30, "draft", "x", "¹", str(uuid.uuid4())):
        answer = client.get(reverse("tool_diff", args=[tool.pk]), {"from": "1", "to": wrong})
        assert answer.status_code == 404, wrong
    assert client.get(reverse("tool_diff", args=[foreign.pk])).status_code == 404


def test_hostile_schema_text_is_escaped(acme: Cast) -> None:
    hostile = "</td><script>alert(1)</script>"
    register_tool(acme)
    tool = register_tool(
        acme,
        description=hostile,
        on_collision="replace",
        input_schema={"properties": {hostile: {"const": hostile}}},
    )
    assert "<script>alert" not in get(acme.viewer, "tool_diff", tool.pk)


def test_diff_api_matches_the_page(acme: Cast) -> None:
    register_tool(acme)
    tool = register_tool(acme, input_schema=NARROW, on_collision="replace")
    key = create_key(acme.tenant, "reader", [Scope.READ])[1]
    client = Client(headers={"Authorization": f"Bearer {key}"})
    document = client.get(f"/api/v1/tools/{tool.pk}/diff?from=1&to=2").json()
    assert (document["callers"], document["consumers"]) == ("breaking", "compatible")
    assert {"city", "maxLength"} <= {
        part for one in document["json_diff"] for part in one["pointer"].split("/")
    }
    missing = client.get(f"/api/v1/tools/{tool.pk}/diff?from=1&to=9")
    assert (missing.status_code, missing.json()["code"]) == (404, "not_found")
    assert client.get(f"/api/v1/tools/{tool.pk}/diff?from=1").status_code == 422


# The list


@pytest.mark.slow
def test_unregistered_called_tools_are_observed(acme: Cast) -> None:
    register_tool(acme)
    send_call(acme, "get_weather")
    send_call(acme, "nobody_registered_me", is_error=True)
    keep_tools(0)
    page = get(acme.viewer, "tool_list")
    assert "nobody_registered_me" in page
    assert page.count("Observed</span>") == 1
    assert "1 failed" in page
    assert "get_weather" not in get(acme.viewer, "tool_list", state="observed")
    assert "nobody_registered_me" not in get(acme.viewer, "tool_list", state="published")


def test_tool_called_long_ago_is_still_observed(acme: Cast) -> None:
    now = datetime.now(UTC)
    send_call(acme, "old_one", started_at=now - timedelta(days=9))
    with tenant_scope(acme.tenant.id):
        note_tools(now)
    send_call(acme, "new_one")
    with tenant_scope(acme.tenant.id):
        note_tools(now)
        note_tools(now)
        with connection.cursor() as cursor:
            cursor.execute("SELECT tool_name FROM observed_tool ORDER BY 1")
            assert cursor.fetchall() == [("new_one",), ("old_one",)]
    page = get(acme.viewer, "tool_list")
    assert "old_one" in page
    assert f"{now - timedelta(days=9):%Y-%m-%d}" in page


def test_list_is_filtered_by_name_state_and_tag(acme: Cast, globex: Cast) -> None:
    for name in ("alpha", "beta", "gamma"):
        register_tool(acme, name=name)
    register_tool(globex, name="theirs")
    with tenant_scope(acme.tenant.id):
        alpha, beta = Tool.objects.get(name="alpha"), Tool.objects.get(name="beta")
        describe_tool(alpha, {"tags": ["maps"]}, Publisher(acme.editor))
        version = find_version(beta, 1)
        assert version is not None
        states.deprecate(version, Publisher(acme.editor))
        drafts.create_draft(
            beta, weather_contract(name="beta", description="b"), Publisher(acme.editor)
        )

    def listed(**query: str) -> list[str]:
        page = get(acme.viewer, "tool_list", **query)
        names = ("alpha", "beta", "gamma", "theirs")
        return [name for name in names if f'">{name}</a>' in page]

    assert listed() == ["alpha", "beta", "gamma"]
    assert listed(q="ALP") == ["alpha"]
    assert listed(state="deprecated") == listed(state="draft") == ["beta"]
    assert listed(state="published") == ["alpha", "gamma"]
    assert listed(tag="maps") == ["alpha"]
    assert listed(q="%", state="x", tag="\x00") == listed(tag="\x00") == []
    assert listed(q="x" * 1_000) == []
    assert "Nothing was searched" in get(acme.viewer, "tool_list", tag="\x00")
    assert "No tools found" in get(acme.viewer, "tool_list", q="nothing")


# Tools of one turn


def test_ephemeral_tool_expires_when_not_called(acme: Cast) -> None:
    tool = register_tool(acme, name="for_a_turn", ephemeral=True)
    stays = register_tool(acme, name="stays")
    called = register_tool(acme, name="called", ephemeral=True)
    now = datetime.now(UTC)
    tomorrow = now + timedelta(hours=25)
    send_call(acme, "called", started_at=now + timedelta(hours=2))
    with tenant_scope(acme.tenant.id):
        note_tools(now)
        assert expire_ephemeral(now) == 0
        assert expire_ephemeral(tomorrow) == 1
        assert expire_ephemeral(tomorrow) == 0
        change = timeline(tool, size=1)[0]
    assert (change.kind, change.user_name, change.key_id) == ("retired", "", "")
    assert "is ephemeral" in change.reason
    assert state_of(acme, stays, 1) == state_of(acme, called, 1) == State.PUBLISHED
    assert "by Tooltrail" in " ".join(get(acme.viewer, "tool_detail", tool.pk).split())
