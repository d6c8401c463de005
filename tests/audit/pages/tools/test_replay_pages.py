"""The pages of replays and reviews: starting one, reading it, and publishing the draft."""

import re
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from procrastinate.contrib.django.models import ProcrastinateJob

from audit.work.replay import job
from tenants.models import Action
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, send_events
from tests.support.pages import HOSTILE, signed_in, text
from tests.support.replays import (
    ARGS,
    LOOSE,
    NOW,
    STRICT,
    publish_contract,
    read_replay,
    run_replay,
    send_outputs,
)
from tools_registry.changes import Publisher, timeline
from tools_registry.drafts import create_draft, find_draft, save_draft
from tools_registry.models import Tool
from tools_registry.schemas import ToolContract

PARAMS = {"limit": "100", "range": "24h"}


def contract_with(output: Any) -> ToolContract:
    return ToolContract(name="get_weather", description="", input_schema=ARGS, output_schema=output)


@pytest.fixture
def tool(acme: Cast) -> Tool:
    """A tool whose draft is stricter than its version."""
    tool = publish_contract(acme)
    with tenant_scope(acme.tenant.id):
        create_draft(tool, contract_with(STRICT), Publisher(acme.editor))
    return tool


def start(cast: Cast, tool: Tool, **params: str) -> UUID:
    answer = signed_in(cast.editor).post(f"/tools/{tool.pk}/replays", PARAMS | params)
    match = re.fullmatch(rf"/tools/{tool.pk}/replays/([0-9a-f-]{{36}})", answer.headers["Location"])
    assert match is not None, answer.headers["Location"]
    return UUID(match[1])


def test_replay_is_started_watched_and_read(acme: Cast, tool: Tool) -> None:
    send_outputs(acme, [{"celsius": 1}] * 3 + [{}] * 2 + [{"celsius": "72 degrees", "wind": 1}])
    pk = start(acme, tool)
    assert ProcrastinateJob.objects.filter(args__replay_id=str(pk), status="todo").count() == 1
    editor = signed_in(acme.editor)
    page = editor.get(f"/tools/{tool.pk}/replays/{pk}").content.decode()
    assert 'hx-trigger="click, every 1s"' in page
    assert "Cancel" in text(page)
    run_replay(acme, pk)
    page = editor.get(f"/tools/{tool.pk}/replays/{pk}").content.decode()
    assert "every 1s" not in page
    shown = text(page)
    for expected in (
        "New violations 2",
        "Still violating 1",
        "Passing 3",
        "$.celsius",
        "MISSING_REQUIRED",
    ):
        assert expected in shown
    assert 'Required field "celsius" is missing' in shown
    assert len(re.findall(r'href="/calls/\d{4}-\d\d-\d\d/[0-9a-f-]{36}"', page)) >= 2
    with tenant_scope(acme.tenant.id):
        assert Action.objects.filter(verb="tool.replay", tenant=acme.tenant).exists()


def test_viewer_sees_figures_without_payloads(acme: Cast, tool: Tool) -> None:
    send_outputs(acme, [{"celsius": 1, "wind": "secret weather"}])
    with tenant_scope(acme.tenant.id):
        draft = find_draft(tool)
        assert draft is not None
        wind = {"type": "object", "properties": {"wind": {"enum": ["calm"]}}}
        save_draft(draft, contract_with(wind), Publisher(acme.editor), expected_revision=1)
    pk = start(acme, tool)
    run_replay(acme, pk)
    address = f"/tools/{tool.pk}/replays/{pk}"
    assert "secret weather" in signed_in(acme.editor).get(address).content.decode()
    for path in (address, f"/tools/{tool.pk}/draft/review"):
        page = signed_in(acme.viewer).get(path).content.decode()
        assert "secret weather" not in page
        assert "ENUM_MISMATCH" in page
        assert "Your role can't view payloads" in page
        assert "Replay calls" not in text(page)


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"limit": "0"}, "greater than or equal to 1"),
        ({"limit": "100001"}, "less than or equal to 100000"),
        ({"range": "own"}, "Enter the start of the range"),
        ({"range": "own", "since": "yesterday"}, "Enter a time as"),
        ({"range": "never"}, "not one of the available choices"),
    ],
)
def test_invalid_replay_request_is_reported(
    acme: Cast, tool: Tool, params: dict[str, str], expected: str
) -> None:
    path = f"/tools/{tool.pk}/replays"
    answer = signed_in(acme.editor).post(path, PARAMS | params, follow=True)
    shown = text(answer.content.decode())
    assert "Nothing was replayed" in shown
    assert expected in shown


def test_custom_range_limits_the_replay(acme: Cast, tool: Tool) -> None:
    since = f"{NOW - timedelta(days=3):%Y-%m-%dT%H:%M}"
    replay = read_replay(acme, start(acme, tool, range="own", since=since))
    assert timedelta(days=2) < replay.until - replay.since < timedelta(days=4)


def test_replay_and_publish_require_a_draft(acme: Cast) -> None:
    tool = publish_contract(acme)
    editor = signed_in(acme.editor)
    for path, expected in (
        ("replays", "the tool has no draft"),
        ("draft/publish", "the tool has no draft"),
    ):
        answer = editor.post(f"/tools/{tool.pk}/{path}", PARAMS, follow=True)
        assert expected in text(answer.content.decode())


def test_replay_can_be_cancelled(acme: Cast, tool: Tool) -> None:
    pk = start(acme, tool)
    signed_in(acme.editor).post(f"/tools/{tool.pk}/replays/{pk}/cancel")
    assert read_replay(acme, pk).state == "cancelled"
    assert not job.run_slice(acme.tenant.id, pk)


def test_breaking_draft_is_published_only_with_a_recorded_reason(acme: Cast, tool: Tool) -> None:
    send_outputs(acme, [{"celsius": 1}] * 3 + [{}] * 2)
    run_replay(acme, start(acme, tool))
    editor = signed_in(acme.editor)
    review, path = f"/tools/{tool.pk}/draft/review", f"/tools/{tool.pk}/draft/publish"
    assert "new violations in 2" in text(editor.get(review).content.decode())
    answer = editor.post(path, {"revision": "1", "reason": "  "})
    assert answer.status_code == 422
    assert "Enter a reason to publish it anyway" in text(answer.content.decode())
    answer = editor.post(path, {"revision": "9", "reason": "It must."}, follow=True)
    assert "The draft has changed since you opened it" in text(answer.content.decode())
    answer = editor.post(path, {"revision": "1", "reason": "The new station measures it."})
    assert answer.headers["Location"] == f"/tools/{tool.pk}/2"
    with tenant_scope(acme.tenant.id):
        last = timeline(tool, size=1)[0]
    assert (last.kind, last.number, last.reason, last.user_name) == (
        "published",
        2,
        "The new station measures it.",
        acme.editor.username,
    )


def test_draft_without_breaking_changes_is_published_without_a_reason(acme: Cast) -> None:
    tool = publish_contract(acme)
    with tenant_scope(acme.tenant.id):
        narrower = LOOSE | {"maxProperties": 50}
        create_draft(tool, contract_with(narrower), Publisher(acme.editor))
    send_outputs(acme, [{"celsius": 1}])
    run_replay(acme, start(acme, tool))
    editor = signed_in(acme.editor)
    review = text(editor.get(f"/tools/{tool.pk}/draft/review").content.decode())
    assert "Narrower output: all results were possible before" in review
    assert "No breaking changes found" in review
    answer = editor.post(f"/tools/{tool.pk}/draft/publish", {"revision": "1"})
    assert answer.headers["Location"] == f"/tools/{tool.pk}/2"


def test_replay_without_calls_makes_no_claim_about_the_draft(acme: Cast) -> None:
    tool = publish_contract(acme)
    with tenant_scope(acme.tenant.id):
        create_draft(tool, contract_with(LOOSE | {"maxProperties": 50}), Publisher(acme.editor))
    run_replay(acme, start(acme, tool))
    review = text(signed_in(acme.editor).get(f"/tools/{tool.pk}/draft/review").content.decode())
    assert "No call could be validated" in review
    assert "No breaking changes found" not in review


def test_schema_breaking_draft_needs_a_reason_without_a_replay(acme: Cast) -> None:
    tool = publish_contract(acme)
    with tenant_scope(acme.tenant.id):
        create_draft(tool, contract_with(LOOSE | {"properties": {}}), Publisher(acme.editor))
    editor = signed_in(acme.editor)
    answer = editor.post(f"/tools/{tool.pk}/draft/publish", {"revision": "1"})
    assert answer.status_code == 422
    shown = text(answer.content.decode())
    assert "Wider output: consumers may get new results" in shown
    assert "Enter a reason to publish it anyway" in shown


def test_outdated_replay_reports_that_the_draft_has_changed(acme: Cast, tool: Tool) -> None:
    send_outputs(acme, [{}])
    pk = start(acme, tool)
    run_replay(acme, pk)
    with tenant_scope(acme.tenant.id):
        draft = find_draft(tool)
        assert draft is not None
        save_draft(draft, contract_with(LOOSE), Publisher(acme.editor), expected_revision=1)
    page = text(signed_in(acme.editor).get(f"/tools/{tool.pk}/replays/{pk}").content.decode())
    assert "have changed since" in page
    review = text(signed_in(acme.editor).get(f"/tools/{tool.pk}/draft/review").content.decode())
    assert "Not replayed since the last change" in review


def test_existing_version_is_not_published_twice(acme: Cast) -> None:
    tool = publish_contract(acme)
    with tenant_scope(acme.tenant.id):
        create_draft(tool, contract_with(LOOSE), Publisher(acme.editor))
    path = f"/tools/{tool.pk}/draft/publish"
    answer = signed_in(acme.editor).post(path, {"revision": "1", "reason": "x"}, follow=True)
    assert "This contract is already version 1" in text(answer.content.decode())


@pytest.mark.parametrize("hostile", [one for one in HOSTILE if "\x00" not in one])
def test_hostile_names_and_values_are_escaped(acme: Cast, tool: Tool, hostile: str) -> None:
    output = {"status": "ok", "data": {hostile: 1, "celsius": hostile, "sky": hostile}}
    send_events(acme.tenant, make_call(started_at=NOW - timedelta(minutes=1), output=output))
    pk = start(acme, tool)
    run_replay(acme, pk)
    assert read_replay(acme, pk).read_count == 1
    page = signed_in(acme.editor).get(f"/tools/{tool.pk}/replays/{pk}").content.decode()
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "\u202e" not in page


def test_replay_of_another_tenant_or_tool_is_not_found(
    acme: Cast, globex: Cast, tool: Tool
) -> None:
    pk = start(acme, tool)
    other = publish_contract(acme, name="other")
    for user, path in (
        (globex.admin, f"/tools/{tool.pk}/replays/{pk}"),
        (acme.admin, f"/tools/{other.pk}/replays/{pk}"),
    ):
        assert signed_in(user).get(path).status_code == 404
        assert signed_in(user).post(f"{path}/cancel").status_code == 404
    assert signed_in(acme.viewer).post(f"/tools/{tool.pk}/replays", PARAMS).status_code == 403
    assert read_replay(acme, pk).state == "waiting"
