"""Export and import of the registry as JSON: the preview, and the result."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tenants.models import Action, Scope
from tenants.scope import tenant_scope
from tests.support.contracts import make_contract
from tests.support.factories import Cast
from tests.support.registered_tools import DEFINITION, register_tool, weather_contract
from tests.support.registry_exchange import (
    client,
    client_with_key,
    confirm_import,
    exported_registry,
    fill_registry,
    upload_registry,
    without_history,
)
from tools_registry import states
from tools_registry.changes import Publisher, timeline
from tools_registry.drafts import create_draft, find_draft
from tools_registry.exchange.applying import HAS_CHANGED, Way, import_tool
from tools_registry.exchange.planning import PlannedTool, plan_import
from tools_registry.exchange.reading import UnreadableError, open_document
from tools_registry.models import Tool, ToolChange, ToolImport, ToolVersion
from tools_registry.versions import find_version


def planned(cast: Cast, document: Any, *, as_drafts: bool = False) -> list[PlannedTool]:
    read = [entry.read() for entry in open_document(json.dumps(document)).entries]
    with tenant_scope(cast.tenant.id):
        return plan_import(cast.tenant.id, read, as_drafts=as_drafts)


def applied(cast: Cast, document: Any, *, as_drafts: bool = False) -> list[PlannedTool]:
    way = Way(as_drafts, Publisher(cast.editor), "From the other side.")
    entries = open_document(json.dumps(document)).entries
    with tenant_scope(cast.tenant.id):
        return [import_tool(cast.tenant, entry.read(), way) for entry in entries]


# The registry's own document


def test_import_of_an_own_export_changes_nothing(acme: Cast) -> None:
    fill_registry(acme)
    document = exported_registry(acme.tenant)
    assert [tool["name"] for tool in document["tools"]] == ["get_weather", "other", "without"]
    with tenant_scope(acme.tenant.id):
        before = ToolChange.objects.count()
    for as_drafts in (False, True):
        plan = applied(acme, document, as_drafts=as_drafts)
        assert [one.status for one in plan] == ["unchanged"] * 3
    with tenant_scope(acme.tenant.id):
        assert ToolChange.objects.count() == before
    assert exported_registry(acme.tenant) == document


def test_import_copies_the_registry_to_another_tenant(acme: Cast, globex: Cast) -> None:
    fill_registry(acme)
    document = exported_registry(acme.tenant)
    plan = applied(globex, document)
    assert [one.status for one in plan] == ["added"] * 3
    assert without_history(exported_registry(globex.tenant)) == without_history(
        exported_registry(acme.tenant)
    )
    with tenant_scope(globex.tenant.id):
        tool = Tool.objects.get(name="get_weather")
        changes = timeline(tool, size=50)[::-1]
        kinds = [change.kind for change in changes]
        assert kinds == [
            *("created", "described", "published", "published", "published", "made_current"),
            *("retired", "deprecated"),
        ]
        assert {change.user_name for change in changes} == {globex.editor.username}
        assert {change.reason for change in changes} == {"From the other side."}
        origin = changes[2].details["imported"]
        assert (origin["version"], origin["published_by"]) == (1, "key")
        assert Action.objects.filter(verb="tool.publish").count() == 4


@pytest.mark.slow
def test_import_adds_versions_and_keeps_existing_ones(acme: Cast, globex: Cast) -> None:
    fill_registry(acme)
    register_tool(globex, description="their own")
    [changed, *_] = applied(globex, exported_registry(acme.tenant))
    assert changed.status == "changed"
    assert "version 2 published (version 1 in the file)" in [step.text for step in changed.steps]
    with tenant_scope(globex.tenant.id):
        tool = Tool.objects.get(name="get_weather")
        current = find_version(tool, tool.current_number)
        assert current is not None
        assert (tool.latest_number, current.number, current.description) == (4, 3, "b")
        first = find_version(tool, 1)
        assert first is not None
        assert first.description == "their own"
    assert {one.status for one in applied(globex, exported_registry(acme.tenant))} == {"unchanged"}


def test_retired_version_is_made_current_as_in_the_document(acme: Cast) -> None:
    fill_registry(acme)
    document = exported_registry(acme.tenant)
    document["tools"][0]["current_version"] = 1
    [changed, *_] = applied(acme, document)
    assert [step.action for step in changed.steps] == ["restore", "make_current", "retire"]
    assert exported_registry(acme.tenant)["tools"][0] == document["tools"][0]


def test_import_as_drafts_publishes_nothing(acme: Cast, globex: Cast) -> None:
    fill_registry(acme)
    document = exported_registry(acme.tenant)
    register_tool(globex)
    plan = applied(globex, document, as_drafts=True)
    assert [one.status for one in plan] == ["changed", "added", "added"]
    with tenant_scope(globex.tenant.id):
        assert ToolVersion.objects.count() == 1
        draft = find_draft(Tool.objects.get(name="get_weather"))
        assert draft is not None
        assert (draft.description, draft.saved_by) == ("b", globex.editor.username)
    assert {one.status for one in applied(globex, document, as_drafts=True)} == {"unchanged"}


def test_existing_draft_is_not_overwritten(acme: Cast) -> None:
    tool = register_tool(acme)
    with tenant_scope(acme.tenant.id):
        create_draft(tool, weather_contract(description="Mine."), Publisher(acme.admin))
    [one] = applied(acme, DEFINITION, as_drafts=True)
    assert one.status == "refused"
    assert f"already has a draft, saved by {acme.admin.username}" in one.problems[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "a\0b"}, "tools[0].name: is not a valid"),
        ({"link": "javascript:alert(1)"}, "tools[0]: link: must start with https://"),
        ({"tags": ["x" * 60]}, "tools[0]: tags.0"),
        ({"current_version": 7}, "tools[0].current_version: is not one of its versions"),
        ({"versions": {}}, "tools[0].versions: is not a list"),
        ({"versions": [7]}, "tools[0].versions[0]: is not a JSON object"),
    ],
)
def test_invalid_tool_is_rejected_individually_with_its_position(
    acme: Cast, change: dict[str, Any], message: str
) -> None:
    fill_registry(acme)
    document = exported_registry(acme.tenant)
    document["tools"][0] |= change
    first, *others = planned(acme, document)
    assert first.status == "refused"
    assert any(problem.startswith(message) for problem in first.problems)
    assert {one.status for one in others} == {"unchanged"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"input_schema": {"type": "objekt"}}, "versions[0].input_schema: is not a usable"),
        ({"output_schema": {"$ref": "#"}, "digest": None}, "versions[0].output_schema: cannot be"),
        ({"digest": "sha256:0"}, "versions[0].digest: does not match the contract"),
        ({"state": "asleep"}, "versions[0].state: must be one of"),
        ({"version": 0}, "versions[0].version: is not a version number"),
        ({"version": 9}, "versions[1].version: must be greater than 9"),
    ],
)
def test_invalid_version_is_reported_with_its_position(
    acme: Cast, change: dict[str, Any], message: str
) -> None:
    fill_registry(acme)
    document = exported_registry(acme.tenant)
    document["tools"][0]["versions"][0] |= change
    [first, *_] = planned(acme, document)
    assert any(problem.startswith(f"tools[0].{message}") for problem in first.problems)


def test_outdated_plan_is_not_applied(acme: Cast) -> None:
    [entry] = open_document(json.dumps(DEFINITION)).entries
    [preview] = planned(acme, DEFINITION)
    tool = register_tool(acme)
    way = Way(False, Publisher(acme.editor), "Because.")
    with tenant_scope(acme.tenant.id):
        imported = import_tool(acme.tenant, entry.read(), way, expected=preview.fingerprint)
        assert (imported.status, imported.problems) == ("refused", [HAS_CHANGED])
        assert ToolVersion.objects.filter(tool=tool).count() == 1


# Definitions


def test_definition_keeps_members_not_specified(acme: Cast) -> None:
    register_tool(acme, trusted=True, meta={"team": "maps"})
    [one] = applied(acme, [DEFINITION | {"title": "Weather"}])
    assert one.status == "changed"
    assert one.verdicts == {"callers": "breaking", "consumers": "compatible"}
    with tenant_scope(acme.tenant.id):
        version = ToolVersion.objects.get(number=2)
        assert (version.trusted, version.description) == (True, "Anew.")
        assert version.output_schema == make_contract()["output_schema"]
        assert version.meta == {"team": "maps", "mcp": {"title": "Weather"}}
    assert {one.status for one in applied(acme, [DEFINITION])} == {"unchanged"}


def test_definition_of_an_earlier_version_makes_that_version_current(acme: Cast) -> None:
    register_tool(acme)
    register_tool(acme, description="b", on_collision="replace")
    tool = register_tool(acme, description="c")
    by = Publisher(acme.admin)
    with tenant_scope(acme.tenant.id):
        states.set_current(find_version(tool, 1) or pytest.fail(), by)
    [one] = applied(acme, [{**DEFINITION, "description": "b", "inputSchema": {}}], as_drafts=False)
    assert [step.action for step in one.steps] == ["publish"]
    back = make_contract()
    given = {"name": "get_weather", "description": back["description"]}
    [one] = applied(acme, [{**given, "input_schema": back["input_schema"]}])
    assert [step.text for step in one.steps] == ["version 1 made current"]
    [one] = planned(acme, [{**DEFINITION, "description": "b", "inputSchema": {}}], as_drafts=True)
    assert "is already version 3" in one.problems[0]


def test_unusable_definition_is_rejected_with_its_position(acme: Cast) -> None:
    hostile = {"type": "function", "function": {"name": "f", "parameters": {"pattern": "^(?!a)"}}}
    [one] = planned(acme, {"model": "m", "tools": [hostile]})
    assert one.status == "refused"
    assert one.problems[0].startswith("tools[0].function.parameters: cannot be used for validation")


# Pages


@pytest.mark.slow
def test_file_is_previewed_and_imported(acme: Cast) -> None:
    register_tool(acme)
    register_tool(acme, name="same")
    same = make_contract()
    unchanged = {key: same[key] for key in ("description", "input_schema")} | {"name": "same"}
    bad = {"name": "bad", "input_schema": {"type": "x"}}
    address = upload_registry(
        acme.editor, [DEFINITION, unchanged, bad, {"type": "web_search", "name": "w"}]
    )
    page = client(acme.editor).get(address).content.decode()
    for shown in (
        "MCP tools/list, Anthropic",
        "draft created",
        "[2].input_schema: is not a usable JSON Schema at /type",
        "is a tool that the provider runs (web_search)",
        'breaking</span> <span class="dim">for callers',
        "maxLength",
        "Import 1 tool<",
    ):
        assert shown in page, shown
    answer = confirm_import(acme.editor, address, **{"as": "published"})
    assert answer.status_code == 422
    assert "Publishing requires a reason" in answer.content.decode()
    answer = confirm_import(acme.editor, address, **{"as": "published", "reason": "Wider world."})
    assert answer["Location"] == address
    with tenant_scope(acme.tenant.id):
        tool = Tool.objects.get(name="get_weather")
        assert tool.current_number == 2
        assert timeline(tool, size=1)[0].reason == "Wider world."
    page = client(acme.editor).get(address).content.decode()
    for shown in ("Result of 4 tools", "version 2 published", "[2].input_schema", "Wider wor"):
        assert shown in page, shown
    again = {"plan": "", "as": "drafts"}
    assert client(acme.editor).post(f"{address}/confirm", again).status_code == 409
    client(acme.editor).post(f"{address}/discard")
    assert client(acme.editor).get(address).status_code == 404


@pytest.mark.slow
def test_tool_changed_meanwhile_is_rejected_and_previewed_again(acme: Cast) -> None:
    other = {**DEFINITION, "name": "other"}
    address = upload_registry(acme.editor, [DEFINITION, other])
    register_tool(acme)
    assert confirm_import(acme.editor, address, **{"as": "drafts"}).status_code == 302
    page = client(acme.editor).get(address).content.decode()
    for shown in (
        HAS_CHANGED,
        '<dt>Rejected</dt><dd class="num">1<',
        '>Added</dt><dd class="num">1<',
    ):
        assert shown in page, shown
    client(acme.editor).post(f"{address}/preview")
    assert confirm_import(acme.editor, address, **{"as": "drafts"}).status_code == 302
    page = client(acme.editor).get(address).content.decode()
    assert "draft created" in page
    assert HAS_CHANGED not in page
    with tenant_scope(acme.tenant.id):
        draft = find_draft(Tool.objects.get(name="get_weather"))
        assert draft is not None
        assert draft.description == "Anew."


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Choose a file"),
        ("{", "Invalid JSON: Expecting property name"),
        ('{"a": 1, "a": 2}', "occurs twice"),
        ("[]", "The file has no tools"),
        ('{"format": "tooltrail-registry", "version": 2}', "only version 1"),
        ('{"format": "tooltrail-registry", "version": 1, "tools": [], "count": 3}', "truncated"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_unreadable_document_is_rejected_immediately(acme: Cast, text: str, message: str) -> None:
    answer = client(acme.editor).post("/tools/import", {"text": text})
    assert answer.status_code == 422
    assert message in answer.content.decode()
    with tenant_scope(acme.tenant.id):
        assert not ToolImport.objects.exists()


def test_file_larger_than_ten_megabytes_is_rejected(acme: Cast) -> None:
    file = io.BytesIO(b" " * (10 * 1024 * 1024 + 1))
    file.name = "tools.json"
    answer = client(acme.editor).post("/tools/import", {"file": file})
    assert answer.status_code == 422
    assert "more than 10,485,760" in answer.content.decode()


def test_hostile_texts_are_escaped(acme: Cast) -> None:
    hostile = {"name": "<script>x</script>", "inputSchema": {"type": "<b>"}, "<i>": 1}
    page = client(acme.editor).get(upload_registry(acme.editor, [hostile])).content.decode()
    assert "<script>x" not in page
    assert "<b>" not in page
    assert "<i>" not in page


def test_import_requires_the_editor_role_and_export_is_open_to_members(
    acme: Cast, globex: Cast
) -> None:
    address = upload_registry(acme.editor, DEFINITION)
    assert client(acme.viewer).get("/tools/import").status_code == 403
    assert client(acme.viewer).get(address).status_code == 403
    assert client(globex.editor).get(address).status_code == 404
    answer = client(acme.viewer).get("/tools/export.json")
    assert json.loads(answer.getvalue())["count"] == 0
    assert 'attachment; filename="registry-' in answer["Content-Disposition"]


# API and command


@pytest.mark.slow
def test_api_exports_and_imports(acme: Cast, globex: Cast) -> None:
    fill_registry(acme)
    document = json.loads(client_with_key(acme).get("/api/v1/registry").getvalue())
    assert document == exported_registry(acme.tenant)
    importer = client_with_key(globex)

    def post(query: str, status: int = 200) -> Any:
        answer = importer.post(f"/api/v1/registry{query}", document, "application/json")
        assert answer.status_code == status, answer.content
        return answer.json()

    assert post("?as=published", 422)["parameter"] == "reason"
    assert post("?ass=published", 422)["code"] == "parameter"
    preview = post("?as=published&dry_run=true")
    assert (preview["added"], preview["is_dry_run"]) == (3, True)
    assert exported_registry(globex.tenant)["count"] == 0
    imported = post("?as=published&reason=Moved")
    assert imported["tools"] == preview["tools"]
    assert post("?as=published&reason=Moved")["unchanged"] == 3
    with tenant_scope(globex.tenant.id):
        assert {change.key_id == "" for change in ToolChange.objects.all()} == {False}


def test_api_rejects_invalid_documents(acme: Cast) -> None:
    importer = client_with_key(acme)
    answer = importer.post("/api/v1/registry", b"{", "application/json")
    assert (answer.status_code, answer.json()["code"]) == (400, "malformed")
    answer = importer.post("/api/v1/registry", b" " * (10 * 1024 * 1024 + 1), "application/json")
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert client_with_key(acme, Scope.READ).get("/api/v1/registry").status_code == 403


@pytest.mark.slow
def test_operator_exports_and_imports_a_registry(acme: Cast, globex: Cast, tmp_path: Path) -> None:
    fill_registry(acme)
    file = tmp_path / "registry.json"
    call_command("registry", "export", acme.tenant.slug, str(file))
    assert json.loads(file.read_bytes()) == exported_registry(acme.tenant)
    with tenant_scope(acme.tenant.id):
        exported = Action.objects.get(tenant=acme.tenant, verb="registry.export")
    assert exported.user_name.startswith("operator")
    with pytest.raises(CommandError, match="--reason"):
        call_command("registry", "import", globex.tenant.slug, str(file), "--publish")
    message = io.StringIO()
    options = ["--publish", "--reason", "Moved."]
    call_command("registry", "import", globex.tenant.slug, str(file), *options, stdout=message)
    assert message.getvalue().endswith("3 added\n")
    with tenant_scope(globex.tenant.id):
        names = {change.user_name for change in ToolChange.objects.all()}
        actions = {action.user_name for action in Action.objects.filter(verb="tool.publish")}
    assert names == actions
    assert all(name.startswith("operator") for name in names)
    with pytest.raises(CommandError, match="unknown tenant"):
        call_command("registry", "export", "nobody-at-all")


@pytest.mark.parametrize(
    "sent",
    [
        '{"format": "tooltrail-registry", "version": 1, "tools": [], "count": "\\ud800"}',
        '[{"type": "\\ud800"}]',
        '[{"type": "a"}, {"type": "\\u0000"}]',
    ],
)
def test_rejected_document_with_lone_surrogates_is_reported(acme: Cast, sent: str) -> None:
    answer = client(acme.editor).post("/tools/import", {"text": sent})
    assert answer.status_code == 422
    assert any(
        message in answer.text
        for message in ("The file is truncated", "the provider runs", "The file has no tools")
    )


@pytest.mark.parametrize(
    "document",
    [[0] * 5_001, {"format": "tooltrail-registry", "version": 1, "tools": [0] * 5_001}],
)
def test_documents_with_too_many_tools_are_rejected(document: Any) -> None:
    with pytest.raises(UnreadableError, match="more than 5,000 tools"):
        open_document(json.dumps(document))


def test_unstorable_publisher_name_is_rejected(acme: Cast) -> None:
    fill_registry(acme)
    document = exported_registry(acme.tenant)
    tool = next(each for each in document["tools"] if each["name"] == "other")
    tool["name"] = "another"
    tool["versions"][0].pop("digest")
    tool["versions"][0]["published_by"] = "a\0b"
    [plan] = planned(acme, document | {"tools": [tool], "count": 1})
    assert plan.problems[0] == "tools[0].versions[0].published_by: must not contain U+0000"
