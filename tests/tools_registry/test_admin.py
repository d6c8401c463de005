"""Django's admin within the session's tenant: editing notes and drafts, making tools."""

import json
import uuid
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tenants.access import SESSION_TENANT
from tenants.admin_site import site
from tenants.models import Action, Membership, Role, User
from tenants.scope import tenant_scope
from tests.support.contracts import make_contract
from tests.support.factories import Cast
from tests.support.registered_tools import register_tool
from tools_registry.changes import timeline
from tools_registry.models import Tool, ToolDraft, ToolVersion


def _staff(user: User) -> Client:
    user.is_staff = True
    user.save()
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def client(acme: Cast) -> Client:
    return _staff(acme.editor)


def _typed(**overrides: Any) -> dict[str, Any]:
    """What the browser posts for the dull contract; `name` only when the tool is new."""
    contract = {**make_contract(), **overrides}
    contract.pop("digest")
    typed = {"notes": "", **contract}
    for member in ("input_schema", "output_schema", "meta"):
        if not isinstance(typed[member], str):
            typed[member] = "" if typed[member] is None else json.dumps(typed[member])
    for flag in ("trusted", "ephemeral"):
        if not typed[flag]:
            del typed[flag]
    return {
        **typed,
        "versions-TOTAL_FORMS": "0",
        "versions-INITIAL_FORMS": "0",
        "versions-MIN_NUM_FORMS": "0",
        "versions-MAX_NUM_FORMS": "0",
    }


def _change(tool: Tool) -> str:
    return reverse("admin:tools_registry_tool_change", args=[tool.pk])


def _descriptions(cast: Cast, tool: Tool) -> list[str]:
    with tenant_scope(cast.tenant.id):
        versions = ToolVersion.objects.filter(tool=tool).order_by("number")
        return [version.description for version in versions]


def test_notes_are_edited_without_publishing(acme: Cast, client: Client) -> None:
    tool = register_tool(acme)
    answer = client.post(_change(tool), _typed(notes="Ask Ann."))
    assert answer.status_code == 302
    with tenant_scope(acme.tenant.id):
        assert Tool.objects.get().notes == "Ask Ann."
    assert len(_descriptions(acme, tool)) == 1


def test_changed_contract_becomes_a_draft_and_is_published_by_review(
    acme: Cast, client: Client
) -> None:
    tool = register_tool(acme)
    schema = {"type": "object", "properties": {}, "required": ["zone"]}
    answer = client.post(_change(tool), _typed(description="Better.", input_schema=schema))
    review = reverse("draft_review", args=[tool.pk])
    assert (answer.status_code, answer["Location"]) == (302, review)
    assert _descriptions(acme, tool) == ["Tells the weather."]
    # It breaks callers, so the review asks for a reason.
    publish = reverse("draft_publish", args=[tool.pk])
    assert client.post(publish, {"revision": 1}).status_code == 422
    assert _descriptions(acme, tool) == ["Tells the weather."]
    assert client.post(publish, {"revision": 1, "reason": "zones"}).status_code == 302
    with tenant_scope(acme.tenant.id):
        version = ToolVersion.objects.get(number=2)
        assert (version.created_by, version.created_by_key) == (acme.editor.username, "")
    assert _descriptions(acme, tool) == ["Tells the weather.", "Better."]


def test_draft_of_another_user_is_not_overwritten(acme: Cast, client: Client) -> None:
    tool = register_tool(acme)
    assert client.post(_change(tool), _typed(description="Better.")).status_code == 302
    answer = client.post(_change(tool), _typed(description="Best."))
    assert "This tool already has a draft" in answer.content.decode()
    with tenant_scope(acme.tenant.id):
        assert ToolDraft.objects.get().description == "Better."


def test_tool_is_created_with_its_first_version(acme: Cast, client: Client) -> None:
    answer = client.post(reverse("admin:tools_registry_tool_add"), _typed(name="new one"))
    assert answer.status_code == 302
    with tenant_scope(acme.tenant.id):
        version = ToolVersion.objects.get()
        assert (version.tool.name, version.number) == ("new one", 1)
        assert version.digest == make_contract(name="new one")["digest"]


def test_contract_labels_are_separate_from_tool_labels(acme: Cast, client: Client) -> None:
    path = reverse("admin:tools_registry_tool_add")
    assert client.post(path, _typed(name="a", meta="")).status_code == 302
    assert client.post(path, _typed(name="b", meta={"team": "maps"})).status_code == 302
    with tenant_scope(acme.tenant.id):
        assert [tool.meta for tool in Tool.objects.all()] == [{}, {}]
        assert ToolVersion.objects.get(tool__name="b").meta == {"team": "maps"}


@pytest.mark.parametrize(
    ("wrong", "field", "reason"),
    [
        ({"input_schema": {"type": "objekt"}}, "input_schema", "/type"),
        ({"input_schema": "{"}, "input_schema", "valid JSON"),
        ({"input_schema": "[" * 100_000}, "input_schema", "valid JSON"),
        ({"input_schema": "1" * 5000}, "input_schema", "valid JSON"),
        ({"input_schema": "null"}, "input_schema", "required"),
        ({"output_schema": "[]"}, "output_schema", "dictionary"),
        ({"output_schema": '{"minimum": NaN}'}, "output_schema", "JSON cannot represent"),
        ({"on_collision": "explode"}, "on_collision", "valid choice"),
        ({"name": "a\nb"}, "name", "printable"),
        ({"description": ""}, "description", "required"),
    ],
)
def test_invalid_contract_is_not_published_and_shows_errors(
    acme: Cast, client: Client, wrong: dict[str, Any], field: str, reason: str
) -> None:
    answer = client.post(reverse("admin:tools_registry_tool_add"), _typed(**wrong))
    assert answer.status_code == 200
    assert reason in " ".join(answer.context["adminform"].form.errors[field])
    with tenant_scope(acme.tenant.id):
        assert not Tool.objects.exists()


@pytest.mark.parametrize("member", ["input_schema", "output_schema", "meta"])
@pytest.mark.parametrize("text", ['{"a":"\\ud800"}', '{"\\ud800":1}'])
def test_lone_surrogate_is_rejected(acme: Cast, client: Client, member: str, text: str) -> None:
    tool = register_tool(acme)
    answer = client.post(_change(tool), _typed(**{member: text}))
    assert answer.status_code == 200
    assert "lone surrogate" in answer.context["adminform"].form.errors[member][0]
    assert len(_descriptions(acme, tool)) == 1


def test_taken_name_is_rejected_only_within_the_tenant(
    acme: Cast, globex: Cast, client: Client
) -> None:
    register_tool(globex)
    path = reverse("admin:tools_registry_tool_add")
    assert client.post(path, _typed()).status_code == 302
    answer = client.post(path, _typed(description="b"))
    assert answer.context["adminform"].form.errors["name"]


def test_earlier_contract_is_not_published_again(acme: Cast, client: Client) -> None:
    tool = register_tool(acme)
    client.post(_change(tool), _typed(description="Better."))
    client.post(reverse("draft_publish", args=[tool.pk]), {"revision": 1})
    answer = client.post(_change(tool), _typed())
    assert "This contract is already version 1." in answer.content.decode()
    answer = client.post(_change(tool), _typed(description="Better.", meta={"a": 1}))
    assert "Labels alone" in answer.content.decode()
    assert len(_descriptions(acme, tool)) == 2


def test_name_of_a_tool_cannot_be_changed(acme: Cast, client: Client) -> None:
    tool = register_tool(acme)
    client.post(_change(tool), _typed(name="another"))
    with tenant_scope(acme.tenant.id):
        assert Tool.objects.get().name == "get_weather"


def test_every_statement_names_the_tenant(acme: Cast, client: Client) -> None:
    tool = register_tool(acme)
    with CaptureQueriesContext(connection) as queries:
        client.get(reverse("admin:tools_registry_tool_changelist"), {"q": "weather"})
        client.get(_change(tool))
        client.post(_change(tool), _typed(notes="x", description="Better."))
    statements = [one["sql"] for one in queries if '"tool' in one["sql"]]
    assert any(one.startswith("UPDATE") for one in statements)
    without = [one for one in statements if "tenant_id" not in one.partition(" WHERE ")[2]]
    assert [one for one in without if not one.startswith("INSERT")] == []


def test_changes_are_logged_in_the_tenant(acme: Cast, client: Client) -> None:
    tool = register_tool(acme)
    client.post(_change(tool), _typed(description="Better.", notes="Ask Ann."))
    with tenant_scope(acme.tenant.id):
        actions = list(Action.objects.exclude(user_id=None).order_by("id"))
        changes = timeline(tool, size=9)
    assert [action.verb for action in actions] == ["tool.describe", "tool.draft"]
    assert {action.subject for action in actions} == {"get_weather"}
    assert {action.user_name for action in actions} == {acme.editor.username}
    assert [change.kind for change in changes] == ["draft_made", "described", "published"]


@pytest.mark.parametrize("role", ["viewer", "auditor"])
def test_admin_site_requires_the_role_in_the_session_tenant(acme: Cast, role: str) -> None:
    client = _staff(getattr(acme, role))
    assert client.get(reverse("admin:index")).status_code == 403


def test_user_without_staff_status_gets_an_explanation(acme: Cast) -> None:
    client = Client()
    client.force_login(acme.editor)
    answer = client.get(reverse("admin:index"))
    assert answer.status_code == 403
    assert "staff" in answer.content.decode()


def test_anonymous_user_is_redirected_to_the_own_sign_in() -> None:
    answer = Client().get(reverse("admin:index"))
    assert answer["Location"] == "/login?next=/admin/"


def test_tool_of_another_tenant_is_not_found(acme: Cast, globex: Cast, client: Client) -> None:
    foreign = register_tool(globex, name="their secret tool")
    assert client.get(_change(foreign)).status_code == 404
    assert client.post(_change(foreign), _typed(notes="x")).status_code == 404
    missing = reverse("admin:tools_registry_tool_change", args=[uuid.uuid4()])
    assert client.get(missing).status_code == 404
    listed = client.get(reverse("admin:tools_registry_tool_changelist")).content.decode()
    assert "their secret tool" not in listed
    with tenant_scope(globex.tenant.id):
        assert Tool.objects.get().notes == ""


def test_switcher_decides_which_tools_can_be_edited(acme: Cast, globex: Cast) -> None:
    foreign = register_tool(globex)
    with tenant_scope(globex.tenant.id):
        Membership.objects.create(tenant=globex.tenant, user=acme.editor, role=Role.EDITOR)
    client = _staff(acme.editor)
    assert client.get(_change(foreign)).status_code == 404
    client.post(reverse("tenant_switch"), {"tenant": str(globex.tenant.id)})
    assert client.session[SESSION_TENANT] == str(globex.tenant.id)
    assert client.get(_change(foreign)).status_code == 200


def test_tools_cannot_be_deleted(acme: Cast, client: Client) -> None:
    tool = register_tool(acme)
    assert (
        client.post(_change(tool).replace("/change/", "/delete/"), {"post": "yes"}).status_code
        == 404
    )
    listed = reverse("admin:tools_registry_tool_changelist")
    client.post(listed, {"action": "delete_selected", "_selected_action": str(tool.pk)})
    assert len(_descriptions(acme, tool)) == 1


def test_urls_bring_the_tools_to_the_admin_site_without_mistakes() -> None:
    assert site.is_registered(Tool)
    assert site.check(None) == []
