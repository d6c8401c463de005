"""Imports in the worker: one tool at a time, progress, cancelling, kills, and the API."""

import io
import json
import re
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from procrastinate.contrib.django.models import ProcrastinateJob

from tenants.models import Action
from tenants.scope import tenant_scope
from tests.support.factories import Cast
from tests.support.registered_tools import register_tool
from tests.support.registry_exchange import (
    client,
    client_with_key,
    confirm_import,
    exported_registry,
    fill_registry,
    upload_registry,
    without_history,
)
from tools_registry.changes import Publisher
from tools_registry.exchange import job
from tools_registry.exchange.applying import HAS_CHANGED
from tools_registry.models import ImportedTool, Tool, ToolChange, ToolImport
from tools_registry.tasks import import_tools
from tools_registry.tools import describe_tool

PUBLISHED = {"as": "published", "reason": "Moved."}
TOOLS = [{"name": f"tool {n}", "inputSchema": {"type": "object"}} for n in range(5)]


@pytest.fixture(autouse=True)
def _everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "AT_ONCE_TOOLS", 0)


def run(cast: Cast, address: str, chunks: int = 1_000) -> None:
    """What the worker does, or its first transactions."""
    pk = UUID(address.rpartition("/")[2])
    for _ in range(chunks):
        if not job.run_slice(cast.tenant.id, pk, seconds=0):
            return


def page(cast: Cast, address: str) -> str:
    answer = client(cast.editor).get(address)
    assert answer.status_code == 200
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


def confirm(cast: Cast, address: str) -> None:
    answer = confirm_import(cast.editor, address, **PUBLISHED)
    assert answer["Location"] == address


@pytest.mark.slow
def test_large_file_is_imported_by_the_worker_with_progress(acme: Cast, globex: Cast) -> None:
    fill_registry(acme)
    document = exported_registry(acme.tenant)
    address = upload_registry(globex.editor, document)
    jobs = ProcrastinateJob.objects.filter(task_name="tools_registry.tasks.import_tools")
    (task,) = jobs.filter(args__tenant_id=str(globex.tenant.id))
    assert "Being previewed" in page(globex, address)
    shown = client(globex.editor).get(address).content.decode()
    assert 'hx-trigger="click, every 1s"' in shown
    assert client(globex.editor).post(f"{address}/preview")["Location"] == address
    import_tools.func(**task.args)
    assert "Preview of 3 tools" in page(globex, address)
    assert exported_registry(globex.tenant)["count"] == 0
    confirm(globex, address)
    assert jobs.filter(args__tenant_id=str(globex.tenant.id)).count() == 2
    run(globex, address, 1)
    assert "Being imported Tools 1 of 3" in page(globex, address)
    assert "3 tools being imported" in page(globex, "/tools/import")  # whoever left comes back
    run(globex, address)
    text = page(globex, address)
    for part in ("Result of 3 tools", "versions 1 to 3 published", "Added 3", "Moved."):
        assert part in text, part
    assert without_history(exported_registry(globex.tenant)) == without_history(document)
    assert client(acme.editor).get(address).status_code == 404
    assert client(acme.editor).post(f"{address}/cancel").status_code == 404


@pytest.mark.slow
@pytest.mark.parametrize("count", [4, 40])
def test_statements_per_tool_do_not_grow_with_the_number_of_versions(
    acme: Cast, globex: Cast, count: int
) -> None:
    """Statements; with a few for each version, or for each all others, one tool took hours."""
    fill_registry(acme)
    document = exported_registry(acme.tenant)
    tool = next(one for one in document["tools"] if len(one["versions"]) > 1)
    one = tool["versions"][0]
    tool["current_version"] = count
    tool["versions"] = [
        {
            **{member: value for member, value in one.items() if member != "digest"},
            "version": number,
            "description": f"Number {number}.",
            "state": ("retired", "deprecated")[number % 2] if number < count else "published",
        }
        for number in range(1, count + 1)
    ]
    address = upload_registry(globex.editor, document | {"tools": [tool], "count": 1})
    run(globex, address)
    confirm(globex, address)
    with CaptureQueriesContext(connection) as statements:
        run(globex, address)
    (imported_tool,) = exported_registry(globex.tenant)["tools"]
    assert [each["state"] for each in imported_tool["versions"]] == [
        each["state"] for each in tool["versions"]
    ]
    assert len(statements) < 60


class KilledError(Exception):
    """The worker is gone in the middle of a transaction."""


@pytest.mark.slow
def test_import_killed_at_any_statement_has_the_same_result(acme: Cast, globex: Cast) -> None:
    fill_registry(acme)
    document = exported_registry(acme.tenant)
    register_tool(globex, description="their own")
    address = upload_registry(globex.editor, document)
    kills = 0

    def run_with_kills() -> None:
        nonlocal kills
        for at in range(1, 1_000):
            seen = 0

            def die(execute: Callable[..., Any], *rest: Any, at: int = at) -> Any:
                nonlocal seen
                seen += 1
                if seen == at:
                    raise KilledError
                return execute(*rest)

            try:
                with connection.execute_wrapper(die):
                    run(globex, address)
            except KilledError:
                kills += 1
            else:
                return

    run_with_kills()
    assert "Preview of 3 tools" in page(globex, address)
    confirm(globex, address)
    run_with_kills()
    assert kills > 40
    assert "Added 2" in page(globex, address)
    imported_tools = exported_registry(globex.tenant)["tools"]
    assert [len(one["versions"]) for one in imported_tools] == [4, 1, 0]
    with tenant_scope(globex.tenant.id):
        for tool in Tool.objects.all():
            ordinals = ToolChange.objects.filter(tool=tool).values_list("ordinal", flat=True)
            assert sorted(ordinals) == list(range(1, tool.change_count + 1))
        # four of the import's, and the one that was there
        assert Action.objects.filter(verb="tool.publish").count() == 5
    address = upload_registry(globex.editor, document)
    run(globex, address)
    assert "No changes" in page(globex, address)


@pytest.mark.slow
def test_cancelled_import_reports_the_completed_tools(acme: Cast) -> None:
    address = upload_registry(acme.editor, TOOLS)
    run(acme, address)
    confirm(acme, address)
    run(acme, address, 2)
    client(acme.editor).post(f"{address}/cancel")
    run(acme, address)
    text = page(acme, address)
    assert "3 tools of 5 not imported" in text
    assert "Not imported 3 tools" in text
    assert "Added 2" in text
    assert [one["name"] for one in exported_registry(acme.tenant)["tools"]] == ["tool 0", "tool 1"]
    client(acme.editor).post(f"{address}/preview")
    run(acme, address)
    assert "Import 3 tools" in page(acme, address)
    confirm(acme, address)
    run(acme, address)
    assert "Unchanged 2" in page(acme, address)
    assert exported_registry(acme.tenant)["count"] == 5


def test_cancelled_preview_imports_nothing(acme: Cast) -> None:
    address = upload_registry(acme.editor, TOOLS)
    client(acme.editor).post(f"{address}/cancel")
    run(acme, address)
    assert "Cancelled: nothing was imported" in page(acme, address)
    client(acme.editor).post(f"{address}/discard")
    with tenant_scope(acme.tenant.id):
        assert not ImportedTool.objects.exists()


@pytest.mark.slow
def test_tool_changed_by_another_user_is_not_overwritten(acme: Cast, globex: Cast) -> None:
    fill_registry(acme)
    document = exported_registry(acme.tenant)
    tool = register_tool(globex)
    address = upload_registry(globex.editor, document)
    run(globex, address)
    confirm(globex, address)
    with tenant_scope(globex.tenant.id):
        describe_tool(tool, {"owner": "Somebody else"}, Publisher(globex.admin))
    run(globex, address)
    text = page(globex, address)
    assert HAS_CHANGED in text
    assert "Rejected 1" in text
    assert "Added 2" in text
    with tenant_scope(globex.tenant.id):
        tool.refresh_from_db()
        assert (tool.owner, tool.latest_number) == ("Somebody else", 1)


def test_outdated_preview_cannot_be_confirmed(acme: Cast) -> None:
    address = upload_registry(acme.editor, TOOLS)
    run(acme, address)
    seen = client(acme.editor).get(f"{address}?as=drafts").content.decode()
    plan = seen.split('name="plan" value="')[1].split('"')[0]
    client(acme.admin).post(f"{address}/preview")
    run(acme, address)
    answer = client(acme.editor).post(f"{address}/confirm", {"plan": plan, "as": "drafts"})
    assert answer.status_code == 409
    assert "The preview has changed" in answer.content.decode()


@pytest.mark.slow
def test_api_answers_a_large_import_with_a_status_url(acme: Cast, globex: Cast) -> None:
    fill_registry(acme)
    api = client_with_key(globex)
    document, json_type = exported_registry(acme.tenant), "application/json"
    answer = api.post("/api/v1/registry?as=published&dry_run=true", document, json_type)
    assert (answer.status_code, answer.json()["state"]) == (202, "previewing")
    address = answer["Location"]
    assert address == f"/api/v1/registry/imports/{answer.json()['id']}"
    run(globex, address)
    preview = api.get(address).json()
    assert (preview["state"], preview["added"], preview["is_dry_run"]) == (
        "previewed",
        3,
        True,
    )
    assert exported_registry(globex.tenant)["count"] == 0
    answer = api.post("/api/v1/registry?as=published&reason=Moved", document, json_type)
    address = answer["Location"]
    run(globex, address, 1)
    under_way = api.get(address).json()
    assert (under_way["state"], under_way["progress"], under_way["of"]) == ("importing", 1, 3)
    assert [one["name"] for one in under_way["tools"]] == ["get_weather"]
    run(globex, address)
    imported = api.get(address).json()
    assert (imported["state"], imported["added"]) == ("done", 3)
    assert imported["tools"] == preview["tools"]
    assert without_history(exported_registry(globex.tenant)) == without_history(document)
    answer = api.post("/api/v1/registry", TOOLS, json_type)
    assert api.delete(answer["Location"]).json()["state"] == "cancelled"
    run(globex, answer["Location"])
    assert exported_registry(globex.tenant)["count"] == 3
    assert client_with_key(acme).get(answer["Location"]).status_code == 404
    assert client_with_key(acme).delete(answer["Location"]).status_code == 404


def test_interrupted_command_resumes_when_repeated(
    acme: Cast, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "tools.json"
    file.write_text(json.dumps(TOOLS))
    turns = iter([None, None, KeyboardInterrupt])

    def interrupted(*_: int) -> None:
        if turn := next(turns, None):
            raise turn

    monkeypatch.setattr(
        "tools_registry.management.commands.registry.Progress", lambda *_: interrupted, raising=True
    )
    output = io.StringIO()
    with pytest.raises(CommandError, match="interrupted after 3 of 5 tools"):
        call_command("registry", "import", acme.tenant.slug, str(file), stdout=output)
    assert output.getvalue().endswith("3 added\n")
    assert exported_registry(acme.tenant)["count"] == 3
    output = io.StringIO()
    call_command("registry", "import", acme.tenant.slug, str(file), "--json", stdout=output)
    summary = json.loads(output.getvalue())
    assert (summary["added"], summary["unchanged"]) == (2, 3)
    assert [one["status"] for one in summary["tools"]] == ["unchanged"] * 3 + ["added"] * 2


def test_document_without_tools_is_previewed_immediately(acme: Cast) -> None:
    empty = {"format": "tooltrail-registry", "version": 1, "tools": [], "count": 0}
    assert "No changes" in page(acme, upload_registry(acme.editor, empty))
    with tenant_scope(acme.tenant.id):
        assert ToolImport.objects.count() == 1
