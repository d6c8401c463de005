"""Name collisions: the answer, the audit log, and when a name is free again."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from tenants.keys import create_key
from tenants.models import Scope
from tenants.scope import tenant_scope
from tests.support.contracts import make_contract
from tests.support.factories import Cast
from tools_registry import attempts, versions
from tools_registry.changes import Publisher, timeline
from tools_registry.contract_diff import compare_contracts
from tools_registry.models import ChangeKind, State, Tool, ToolChange, ToolVersion
from tools_registry.schemas import ToolContract, check_schema, compile_for_judging
from tools_registry.states import retire, state_of
from tools_registry.versions import find_version

RECORDED = Path(__file__).parents[2] / "sdk" / "tests" / "conformance"


class Executor:
    """One key, and what it tells the registry."""

    def __init__(self, cast: Cast) -> None:
        self.cast = cast
        self.key_id, key = self._make_key(cast)
        self._client = Client(headers={"Authorization": f"Bearer {key}"})

    def _make_key(self, cast: Cast) -> tuple[str, str]:
        row, text = create_key(cast.tenant, "executor", [Scope.REGISTRY])
        return row.key_id, text

    def announce(self, *tools: Any, status: int = 200) -> Any:
        answer = self._client.post(
            "/api/v1/tools", {"tools": list(tools)}, content_type="application/json"
        )
        assert answer.status_code == status, answer.content
        return answer.json()

    def changes(self, name: str = "get_weather") -> list[ToolChange]:
        with tenant_scope(self.cast.tenant.id):
            return timeline(Tool.objects.get(name=name), size=200)[::-1]

    def kinds(self) -> list[str]:
        return [change.kind for change in self.changes()]


@pytest.fixture
def executor(acme: Cast) -> Executor:
    return Executor(acme)


def test_repeated_contract_is_not_logged_again(executor: Executor) -> None:
    for _ in range(3):
        executor.announce(make_contract())
    executor.announce({"digest": make_contract()["digest"]})
    [change] = executor.changes()
    assert (change.kind, change.number, change.key_id) == ("published", 1, executor.key_id)


def test_throw_policy_is_rejected_with_the_diff(executor: Executor) -> None:
    executor.announce(make_contract())
    narrower = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 9}}}
    answer = executor.announce(make_contract(input_schema=narrower), status=409)
    assert (answer["code"], answer["status"]) == ("name_taken", 409)
    [refusal] = answer["refused"]
    diff = refusal["diff"]
    assert (diff["callers"], diff["consumers"], diff["change_count"]) == (
        "breaking",
        "compatible",
        1,
    )
    [change] = diff["changes"]
    assert (change["path"], change["keyword"], change["after"]) == ("$.city", "maxLength", 9)
    assert "before" not in change
    assert change["verdict"] == "breaking"


def test_collision_does_not_affect_other_tools(executor: Executor) -> None:
    executor.announce(make_contract())
    answer = executor.announce(make_contract(description="b"), make_contract(name="other"))
    assert [row["name"] for row in answer["registered"]] == ["other"]
    assert answer["refused"][0]["diff"]["callers"] == "compatible"


def test_long_values_are_truncated_in_the_diff(executor: Executor) -> None:
    executor.announce(make_contract())
    answer = executor.announce(make_contract(description="x" * 5_000), status=409)
    after = answer["refused"][0]["diff"]["changes"][0]["after"]
    assert (len(after), after[-1]) == (501, "…")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "kind", "status"), [("keep", "kept", 200), ("throw", "refused", 409)]
)
def test_attempt_is_recorded_with_its_contract_once_a_day(
    executor: Executor, policy: str, kind: str, status: int
) -> None:
    executor.announce(make_contract())
    brought = make_contract(description="b", on_collision=policy)
    for _ in range(3):
        executor.announce(brought, status=status)
    assert executor.kinds() == ["published", kind]
    attempt = executor.changes()[1]
    assert (attempt.number, attempt.digest) == (1, brought["digest"])
    assert attempt.key_id == executor.key_id
    with tenant_scope(executor.cast.tenant.id):
        assert ToolChange.objects.get(pk=attempt.pk).contract["description"] == "b"
    another = Executor(executor.cast)
    another.announce(brought, status=status)
    assert executor.kinds() == ["published", kind, kind]


def test_recorded_attempts_are_limited_per_day(
    executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "PER_DAY", 3)
    executor.announce(make_contract())
    for number in range(6):
        executor.announce(make_contract(description=f"b{number}", on_collision="keep"))
    assert executor.kinds() == ["published", "kept", "kept", "kept"]


def test_replacement_is_published_by_the_key(executor: Executor) -> None:
    executor.announce(make_contract())
    executor.announce(make_contract(description="b", on_collision="replace"))
    assert [(one.kind, one.number, one.key_id) for one in executor.changes()] == [
        ("published", 1, executor.key_id),
        ("published", 2, executor.key_id),
    ]


def test_earlier_version_is_known_and_does_not_become_current_again(executor: Executor) -> None:
    first, second = make_contract(), make_contract(description="b", on_collision="replace")
    executor.announce(first)
    executor.announce(second)
    executor.announce(first)
    with tenant_scope(executor.cast.tenant.id):
        assert Tool.objects.get().current_number == 2
    assert len(executor.changes()) == 2


def _expire(cast: Cast) -> None:
    with tenant_scope(cast.tenant.id):
        tool = Tool.objects.get()
        version = find_version(tool, tool.current_number)
        assert version is not None
        retire(version, Publisher(), reason="Nobody called it.")


def _state(cast: Cast, number: int = 1) -> State:
    with tenant_scope(cast.tenant.id):
        return state_of(ToolVersion.objects.select_related("tool").get(number=number))


@pytest.mark.parametrize("is_whole", [True, False])
def test_expired_ephemeral_tool_is_restored_on_registration(
    executor: Executor, is_whole: bool
) -> None:
    contract = make_contract(ephemeral=True)
    executor.announce(contract)
    _expire(executor.cast)
    for _ in range(2):
        executor.announce(contract if is_whole else {"digest": contract["digest"]})
    assert executor.kinds() == ["published", "retired", "restored"]
    assert _state(executor.cast) == State.PUBLISHED


def test_name_of_an_expired_ephemeral_tool_is_free_again(executor: Executor) -> None:
    executor.announce(make_contract(ephemeral=True))
    executor.announce(make_contract(description="b", ephemeral=True), status=409)
    _expire(executor.cast)
    answer = executor.announce(make_contract(description="b", ephemeral=True))
    assert [row["version"] for row in answer["registered"]] == [2]


def test_version_retired_by_a_user_stays_retired(executor: Executor) -> None:
    contract = make_contract(ephemeral=True)
    executor.announce(contract)
    with tenant_scope(executor.cast.tenant.id):
        version = ToolVersion.objects.select_related("tool").get()
        retire(version, Publisher(executor.cast.editor))
    executor.announce(contract)
    executor.announce(make_contract(description="b", ephemeral=True), status=409)
    assert _state(executor.cast) == State.RETIRED
    assert ChangeKind.RESTORED not in executor.kinds()


# What nothing can be judged by

UNUSABLE: list[tuple[dict[str, Any], str]] = [
    ({"$ref": "#"}, "without end"),
    ({"pattern": "^(?!a)"}, "cannot run in linear time"),
    ({"pattern": "(a{1000}){1000}"}, "(a{1000}){1000}"),
    ({"$ref": "https://example.com/x.json"}, "external references"),
    ({"enum": ["x" * 1_000_000]}, "262,144"),
]


@pytest.mark.parametrize(("schema", "message"), UNUSABLE)
def test_unusable_schema_is_rejected_and_recorded_with_the_reason(
    executor: Executor, schema: dict[str, Any], message: str
) -> None:
    for _ in range(2):
        answer = executor.announce(make_contract(output_schema=schema), make_contract(name="good"))
    [refusal] = answer["refused"]
    assert (refusal["index"], refusal["code"]) == (0, "malformed")
    assert message in refusal["message"]
    [change] = executor.changes()
    assert (change.kind, change.key_id, change.number) == ("refused", executor.key_id, None)
    assert message in change.reason
    page = Client()
    page.force_login(executor.cast.viewer)
    shown = page.get(f"/tools/{change.tool_id}").content.decode()
    assert "an unusable contract" in shown
    assert "No published version" in shown


@pytest.mark.parametrize("name", ["\0", "\ud800", "a\udfff\0"])
def test_unstorable_member_name_rejects_only_its_tool(executor: Executor, name: str) -> None:
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "properties": {name: 5}}
    for _ in range(2):
        answer = executor.announce(make_contract(output_schema=schema), make_contract(name="good"))
    assert [refusal["index"] for refusal in answer["refused"]] == [0]
    [change] = executor.changes()
    assert change.reason.startswith("output_schema: is not a usable JSON Schema")
    assert len(executor.changes("good")) == 1


def test_unusable_schema_is_rejected_with_any_policy_and_the_current_version_stays(
    executor: Executor,
) -> None:
    executor.announce(make_contract())
    executor.announce(make_contract(output_schema={"$ref": "#"}, on_collision="replace"))
    assert executor.kinds() == ["published", "refused"]
    with tenant_scope(executor.cast.tenant.id):
        assert Tool.objects.get().current_number == 1


def test_existing_lookahead_schema_can_be_published_with_a_new_description(
    executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead = {"pattern": "^(?!x)"}
    lookahead = {"type": "object", "properties": {"a": ahead}}
    with monkeypatch.context() as earlier:  # before there was such a rule
        earlier.setattr(versions, "judging_problems", lambda contract, **_: {})
        executor.announce(make_contract(input_schema=lookahead))
    changed = {"description": "b", "on_collision": "replace"}
    executor.announce(make_contract(input_schema=lookahead, **changed))
    executor.announce(make_contract(output_schema=ahead, **changed))
    assert executor.kinds() == ["published", "published", "refused"]


@pytest.mark.slow
def test_schemas_usable_by_recorded_guards_can_be_registered() -> None:
    schemas = [
        schema
        for file in RECORDED.glob("output_guard_*.jsonl")
        for row in map(json.loads, file.read_text().splitlines())
        for schema in (row.get("schema"), *(row.get("schemas") or {}).values())
        if isinstance(schema, dict) and "$schema" not in schema
    ]
    judged = 0
    for schema in schemas:
        try:
            compile_for_judging(schema)
        except ValueError:
            continue
        judged += 1
        check_schema(schema)
        contract = ToolContract.model_validate(make_contract(output_schema=schema))
        compare_contracts(contract, ToolContract.model_validate(make_contract()))
    assert judged > 500
