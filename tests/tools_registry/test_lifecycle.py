"""Drafts and states: no lost updates, permitted transitions, and the audit log."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from tenants.models import Action
from tenants.scope import tenant_scope
from tests.support.contracts import make_contract
from tests.support.factories import Cast
from tools_registry import drafts, states
from tools_registry.changes import Publisher, timeline, version_states
from tools_registry.models import State, Tool, ToolDraft, ToolVersion
from tools_registry.schemas import ToolContract
from tools_registry.tools import NameTakenError, create_tool, describe_tool
from tools_registry.versions import AlreadyPublishedError, contract_of, publish_version


def contract(**overrides: Any) -> ToolContract:
    return ToolContract.model_validate(make_contract(**overrides))


@pytest.fixture
def by(acme: Cast) -> Publisher:
    return Publisher(acme.editor)


@pytest.fixture
def tool(acme: Cast, by: Publisher) -> Iterator[Tool]:
    """A tool with one version, in its open scope."""
    with tenant_scope(acme.tenant.id):
        tool = create_tool(acme.tenant, "get_weather", by)
        publish_version(tool, contract(), by)
        yield tool


def version_of(tool: Tool, number: int = 1) -> ToolVersion:
    return ToolVersion.objects.select_related("tool").get(tool=tool, number=number)


def kinds(tool: Tool) -> list[str]:
    return [change.kind for change in timeline(tool, size=99)][::-1]


def test_draft_is_saved_published_and_removed(tool: Tool, by: Publisher) -> None:
    draft = drafts.create_draft(tool, contract(description="a"), by)
    drafts.save_draft(draft, contract(description="b"), by, expected_revision=1)
    assert (draft.base_number, draft.revision) == (1, 2)
    version = drafts.publish(
        draft, by, expected_revision=2, newly_violating=0, reason="It was wrong."
    )
    assert (version.number, version.description) == (2, "b")
    assert version.digest == contract(description="b").digest
    assert drafts.find_draft(tool) is None
    stored = Tool.objects.get()
    assert (stored.latest_number, stored.current_number, stored.change_count) == (2, 2, 5)
    assert kinds(tool) == ["created", "published", "draft_made", "draft_saved", "published"]
    last = timeline(tool, size=1)[0]
    assert (last.number, last.reason, last.user_name) == (2, "It was wrong.", by.user_name)
    assert last.digest == version.digest


def test_changes_by_users_keys_and_the_server_are_logged(tool: Tool, by: Publisher) -> None:
    version = publish_version(tool, contract(description="b"), Publisher(key_id="key"))
    states.retire(version, Publisher(), reason="Nobody called it.")
    actions = [(action.verb, action.user_name) for action in Action.objects.order_by("id")]
    assert actions == [
        ("tool.create", by.user_name),
        ("tool.publish", by.user_name),
        ("tool.publish", "API key key"),
        ("tool.retire", "Tooltrail"),
    ]
    assert timeline(tool, size=2)[1].key_id == "key"


def test_changes_saved_by_another_user_are_not_overwritten(
    tool: Tool, by: Publisher, acme: Cast
) -> None:
    mine = drafts.create_draft(tool, contract(description="a"), by)
    draft = drafts.find_draft(tool)
    assert draft is not None
    admin = Publisher(acme.admin)
    drafts.save_draft(draft, contract(description="theirs"), admin, expected_revision=1)
    for transition in (
        lambda: drafts.save_draft(mine, contract(description="mine"), by, expected_revision=1),
        lambda: drafts.publish(mine, by, expected_revision=1, newly_violating=0),
        lambda: drafts.discard_draft(mine, by, expected_revision=1),
    ):
        with pytest.raises(drafts.StaleDraftError, match=acme.admin.username) as raised:
            transition()
        assert raised.value.draft is not None
        assert raised.value.draft.description == "theirs"
    assert ToolDraft.objects.get().description == "theirs"


def test_discarded_draft_can_be_neither_saved_nor_published(tool: Tool, by: Publisher) -> None:
    draft = drafts.create_draft(tool, contract(description="a"), by)
    drafts.discard_draft(draft, by, expected_revision=1, reason="Not needed.")
    again = drafts.create_draft(tool, contract(description="b"), by)
    with pytest.raises(drafts.StaleDraftError):
        drafts.publish(draft, by, expected_revision=1, newly_violating=0)
    drafts.discard_draft(again, by, expected_revision=1)
    with pytest.raises(drafts.StaleDraftError, match="no longer"):
        drafts.save_draft(draft, contract(), by, expected_revision=1)
    assert Tool.objects.get().latest_number == 1


@pytest.mark.parametrize(
    ("members", "newly_violating"),
    [({"input_schema": {"type": "object", "required": ["x"]}}, 0), ({"description": "b"}, 1)],
    ids=["its contract breaks callers", "a replay found new violations"],
)
def test_breaking_draft_needs_a_reason(
    tool: Tool, by: Publisher, members: dict[str, Any], newly_violating: int
) -> None:
    draft = drafts.create_draft(tool, contract(**members), by)
    for reason in ("", " \n"):
        with pytest.raises(drafts.ReasonNeededError):
            drafts.publish(
                draft,
                by,
                expected_revision=1,
                newly_violating=newly_violating,
                reason=reason,
            )
    assert drafts.find_draft(tool) == draft
    version = drafts.publish(
        draft, by, expected_revision=1, newly_violating=newly_violating, reason="It must."
    )
    assert version.number == 2


def test_tool_has_at_most_one_draft(tool: Tool, by: Publisher) -> None:
    draft = drafts.create_draft(tool, contract(description="a"), by, base_number=0)
    with pytest.raises(drafts.DraftExistsError) as raised:
        drafts.create_draft(tool, contract(description="b"), by)
    assert raised.value.draft == draft
    assert draft.base_number == 0


def test_draft_equal_to_a_published_version_is_not_published(tool: Tool, by: Publisher) -> None:
    draft = drafts.create_draft(tool, contract_of(version_of(tool)), by)
    with pytest.raises(AlreadyPublishedError, match="version 1"):
        drafts.publish(draft, by, expected_revision=1, newly_violating=0)
    assert drafts.find_draft(tool) == draft


def test_name_is_unique(acme: Cast, tool: Tool, by: Publisher) -> None:
    with pytest.raises(NameTakenError):
        create_tool(acme.tenant, tool.name, by)
    assert Tool.objects.count() == 1


def test_description_is_stored_and_an_unchanged_one_is_not_logged(
    tool: Tool, by: Publisher
) -> None:
    described = {"owner": "Ann", "tags": ["maps", "paid"], "link": "", "meta": {"tier": 1}}
    for _ in range(2):
        describe_tool(tool, described, by, reason="Ann took over.")
    stored = Tool.objects.get()
    assert (stored.owner, stored.tags, stored.meta) == ("Ann", ["maps", "paid"], {"tier": 1})
    assert kinds(tool) == ["created", "published", "described"]
    details = timeline(tool, size=1)[0].details
    assert details["before"] == {"owner": "", "tags": [], "meta": {}}
    assert details["after"] == {"owner": "Ann", "tags": ["maps", "paid"], "meta": {"tier": 1}}


def test_unstorable_characters_are_replaced_in_the_audit_log(tool: Tool, by: Publisher) -> None:
    describe_tool(tool, {"meta": {"a\0": ["\ud800"]}}, by, reason="It was so imported.")
    action = Action.objects.get(tenant=tool.tenant_id, verb="tool.describe")
    assert action.details["after"] == {"meta": {"a\ufffd": ["\ufffd"]}}
    assert timeline(tool, size=1)[0].details["after"] == {"meta": {"a\0": ["\ud800"]}}


@pytest.mark.parametrize(
    ("path", "state"),
    [
        ([], State.PUBLISHED),
        ([states.deprecate], State.DEPRECATED),
        ([states.retire], State.RETIRED),
        ([states.deprecate, states.retire], State.RETIRED),
        ([states.deprecate, states.restore], State.PUBLISHED),
        ([states.retire, states.restore], State.PUBLISHED),
    ],
)
def test_version_state_follows_from_the_last_change(
    tool: Tool, by: Publisher, path: list[Any], state: State
) -> None:
    version = version_of(tool)
    for step in path:
        step(version, by, reason="Because.")
    assert states.state_of(version) == state
    assert version_states(tool.tenant_id, [tool.pk]) == {(tool.pk, 1): state}
    assert len(kinds(tool)) == 2 + len(path)


@pytest.mark.parametrize(
    ("path", "refused"),
    [
        ([], states.restore),
        ([], states.set_current),
        ([states.deprecate], states.deprecate),
        ([states.retire], states.deprecate),
        ([states.retire], states.retire),
    ],
)
def test_invalid_transition_is_rejected_and_not_recorded(
    tool: Tool, by: Publisher, path: list[Any], refused: Any
) -> None:
    version = version_of(tool)
    for step in path:
        step(version, by)
    before = kinds(tool)
    with pytest.raises(states.StateError):
        refused(version, by)
    assert kinds(tool) == before


def test_earlier_version_is_made_current_unless_retired(tool: Tool, by: Publisher) -> None:
    publish_version(tool, contract(description="b"), by)
    first = version_of(tool)
    states.set_current(first, by, reason="The second breaks callers.")
    assert (Tool.objects.get().current_number, Tool.objects.get().latest_number) == (1, 2)
    change = timeline(tool, size=1)[0]
    assert (change.kind, change.number, change.details) == ("made_current", 1, {"instead_of": 2})
    second = version_of(tool, 2)
    states.retire(second, by)
    with pytest.raises(states.StateError, match="retired"):
        states.set_current(second, by)
    publish_version(second.tool, contract(description="c"), by)
    stored = Tool.objects.get()
    assert (stored.current_number, stored.latest_number) == (3, 3), "numbers are never given twice"


def test_concurrent_saves_leave_one_stale(acme: Cast, by: Publisher) -> None:
    with tenant_scope(acme.tenant.id):
        tool = create_tool(acme.tenant, "get_weather", by)
        drafts.create_draft(tool, contract(), by)
    both_read = threading.Barrier(2)
    outcomes: list[str] = []

    def save(text: str) -> None:
        try:
            with tenant_scope(acme.tenant.id):
                draft = ToolDraft.objects.select_related("tool").get()
                both_read.wait(10)
                drafts.save_draft(draft, contract(description=text), by, expected_revision=1)
            outcomes.append(text)
        except drafts.StaleDraftError:
            outcomes.append("stale")
        finally:
            connection.close()

    threads = [threading.Thread(target=save, args=[text]) for text in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(outcomes)[1] == "stale"
    with tenant_scope(acme.tenant.id):
        assert ToolDraft.objects.get().description in outcomes
