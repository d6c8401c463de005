"""Executors register their tools: new, known, excluded or rejected."""

import json
import threading
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tenants.keys import create_key
from tenants.models import Scope, Tenant
from tenants.scope import tenant_scope
from tests.support.contracts import make_contract
from tests.support.factories import Cast
from tools_registry.models import Tool, ToolVersion


def _post(
    tenant: Tenant, *entries: Any, body: bytes | None = None, scope: Scope = Scope.REGISTRY
) -> Any:
    _, key = create_key(tenant, "executor", [scope])
    return Client(headers={"Authorization": f"Bearer {key}"}).post(
        "/api/v1/tools",
        json.dumps({"tools": entries}).encode() if body is None else body,
        content_type="application/json",
    )


def _versions(cast: Cast, name: str = "get_weather") -> list[tuple[int, str]]:
    with tenant_scope(cast.tenant.id):
        versions = ToolVersion.objects.filter(tool__name=name).order_by("number")
        return [(version.number, version.digest) for version in versions]


def test_new_tool_becomes_version_one(acme: Cast) -> None:
    contract = make_contract(meta={"team": "maps"})
    answer = _post(acme.tenant, contract)
    assert answer.status_code == 200
    row = {"name": "get_weather", "version": 1, "digest": contract["digest"]}
    assert answer.json() == {
        "registered": [row],
        "known": [],
        "unknown": [],
        "kept": [],
        "refused": [],
    }
    with tenant_scope(acme.tenant.id):
        version = ToolVersion.objects.get()
        assert {**contract} == {
            "name": version.tool.name,
            **{name: getattr(version, name) for name in contract if name != "name"},
        }
        assert version.created_by_key != ""
        assert version.created_by == ""


def test_unknown_digests_are_requested_and_known_ones_confirmed(acme: Cast) -> None:
    known, unknown = make_contract(), make_contract(name="other")
    _post(acme.tenant, known)
    mentions = [{"digest": known["digest"]}, {"name": "other", "digest": unknown["digest"]}]
    answer = _post(acme.tenant, *mentions).json()
    assert answer["unknown"] == [unknown["digest"]]
    assert [row["name"] for row in answer["known"]] == ["get_weather"]
    assert _versions(acme, "other") == []


def test_known_contract_changes_nothing_and_takes_no_lock(acme: Cast) -> None:
    contract = make_contract()
    _post(acme.tenant, contract)
    with CaptureQueriesContext(connection) as queries:
        answer = _post(acme.tenant, contract, contract).json()
    assert [row["version"] for row in answer["known"]] == [1]
    assert answer["registered"] == []
    assert not [one for one in queries.captured_queries if "FOR UPDATE" in one["sql"]]
    assert len(_versions(acme)) == 1


def test_replace_policy_publishes_the_new_current_version(acme: Cast) -> None:
    first = make_contract()
    second = make_contract(description="Tells it better.", on_collision="replace")
    _post(acme.tenant, first)
    answer = _post(acme.tenant, second).json()
    assert [row["version"] for row in answer["registered"]] == [2]
    assert _versions(acme) == [(1, first["digest"]), (2, second["digest"])]
    with tenant_scope(acme.tenant.id):
        assert Tool.objects.get().latest_number == 2


def test_keep_policy_is_skipped_and_throw_policy_rejected_for_an_existing_tool(acme: Cast) -> None:
    first = make_contract()
    kept = make_contract(description="b", on_collision="keep")
    refused = make_contract(description="c", on_collision="throw")
    _post(acme.tenant, first)
    answer = _post(acme.tenant, kept, refused).json()
    assert answer["kept"] == [{"name": "get_weather", "version": 1, "digest": kept["digest"]}]
    [refusal] = answer["refused"]
    assert (refusal["index"], refusal["code"], refusal["name"]) == (1, "name_taken", "get_weather")
    assert _versions(acme) == [(1, first["digest"])]


@pytest.mark.parametrize("policy", ["throw", "keep", "replace"])
def test_any_policy_registers_a_new_name(acme: Cast, policy: str) -> None:
    answer = _post(acme.tenant, make_contract(on_collision=policy)).json()
    assert [row["version"] for row in answer["registered"]] == [1]


def test_wrong_digest_is_rejected_with_the_right_one(acme: Cast) -> None:
    right = make_contract()["digest"]
    wrong = make_contract(digest="sha256:" + "0" * 64)
    [refusal] = _post(acme.tenant, wrong).json()["refused"]
    assert refusal["code"] == "wrong_digest"
    assert right in refusal["message"]
    assert _versions(acme) == []


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ({"input_schema": {"type": "objekt"}}, "/type"),
        ({"input_schema": []}, "input_schema"),
        ({"input_schema": {"properties": {"a": {"pattern": "("}}}}, "/properties/a/pattern"),
        ({"output_schema": {"$ref": "#/$defs/nowhere"}}, "nowhere"),
        ({"output_schema": {"$ref": "http://192.0.2.1/schema"}}, "external references"),
        ({"input_schema": {"$schema": "http://192.0.2.1/dialect"}}, "Unknown meta-schema"),
        ({"input_schema": {"minimum": float("inf")}}, "JSON cannot represent"),
        ({"input_schema": {"const": "\ud800"}}, "not a usable JSON Schema"),
        ({"input_schema": {"description": "x" * 300_000}}, "262,144"),
        ({"meta": {"x": "y" * 70_000}}, "65,536"),
        ({"meta": {"a\x00b": 1}}, "U+0000"),
        ({"meta": {"a": [{"b": "\ud800"}]}}, "lone surrogate"),
        ({"name": ""}, "name"),
        ({"name": "a\x00b"}, "printable"),
        ({"name": "x" * 257}, "name"),
        ({"description": "a\x00b"}, "U+0000"),
        ({"description": None}, "description"),
        ({"trusted": "yes"}, "trusted"),
        ({"on_collision": "explode"}, "on_collision"),
    ],
)
def test_invalid_entries_are_rejected_individually(
    acme: Cast, broken: dict[str, Any], reason: str
) -> None:
    good = make_contract(name="good")
    bad = {**make_contract(), **broken}
    answer = _post(acme.tenant, bad, good)
    assert answer.status_code == 200
    [refusal] = answer.json()["refused"]
    assert (refusal["index"], refusal["code"]) == (0, "malformed")
    assert reason in refusal["message"]
    assert [row["name"] for row in answer.json()["registered"]] == ["good"]


def test_schema_nested_too_deep_is_rejected(acme: Cast) -> None:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(64):
        schema = {"not": schema}
    [refusal] = _post(acme.tenant, {**make_contract(), "input_schema": schema}).json()["refused"]
    assert "64 levels" in refusal["message"]


@pytest.mark.parametrize("entry", [None, 1, "x", [], {}, {"digest": 1}, {"digest": "sha256:x\x00"}])
def test_entry_that_is_not_a_tool_is_rejected(acme: Cast, entry: Any) -> None:
    [refusal] = _post(acme.tenant, entry).json()["refused"]
    assert refusal["code"] == "malformed"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b"{}", 400),
        (b'{"tools": {}}', 400),
        (b"\xff\xfe", 400),
        (b"[" * 200_000, 400),
        (b'{"tools": [' + b"1" * 5000 + b"]}", 400),
        (b'{"tools": [' + b",".join([b"1"] * 501) + b"]}", 413),
        (b" " * (5 * 1024 * 1024 + 1), 413),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_body_without_a_list_of_tools_gets_a_problem(acme: Cast, body: bytes, status: int) -> None:
    answer = _post(acme.tenant, body=body)
    assert answer.status_code == status
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json()["status"] == status


def test_schemas_are_stored_as_written(acme: Cast) -> None:
    schema = {"type": "object", "properties": {"z": {"const": "\x00"}, "a": {"maximum": 1.0}}}
    _post(acme.tenant, make_contract(input_schema=schema))
    with tenant_scope(acme.tenant.id):
        stored = ToolVersion.objects.get().input_schema
    assert json.dumps(stored) == json.dumps(schema), "order and spelling included"


def test_each_tenant_has_its_own_registry(acme: Cast, globex: Cast) -> None:
    contract = make_contract()
    _post(acme.tenant, contract)
    answer = _post(globex.tenant, {"digest": contract["digest"]}).json()
    assert answer["unknown"] == [contract["digest"]]
    assert _post(globex.tenant, contract).json()["registered"][0]["version"] == 1


@pytest.mark.parametrize("scope", [Scope.INGEST, Scope.READ])
def test_key_needs_the_registry_scope(acme: Cast, scope: Scope) -> None:
    answer = _post(acme.tenant, make_contract(), scope=scope)
    assert (answer.status_code, answer.json()["code"]) == (403, "missing_scope")


def test_registry_requires_a_key() -> None:
    answer = Client().post("/api/v1/tools", b"{}", content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (401, "missing_key")
    assert "Bearer" in answer["WWW-Authenticate"]


def test_executors_starting_concurrently_register_each_tool_once(acme: Cast) -> None:
    names = [f"tool_{i}" for i in range(6)]
    orders = [names, names[::-1], names[3:] + names[:3]]
    all_started = threading.Barrier(len(orders))
    answers: list[Any] = []

    def start(order: list[str]) -> None:
        try:
            all_started.wait(10)
            answers.append(_post(acme.tenant, *(make_contract(name=name) for name in order)))
        finally:
            connection.close()

    threads = [threading.Thread(target=start, args=[order]) for order in orders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert [answer.status_code for answer in answers] == [200, 200, 200]
    registered = [row["name"] for answer in answers for row in answer.json()["registered"]]
    assert sorted(registered) == names
    assert all([number for number, _ in _versions(acme, name)] == [1] for name in names)


def test_published_version_cannot_be_changed(acme: Cast) -> None:
    from django.db.utils import ProgrammingError

    _post(acme.tenant, make_contract())
    for attempt in ("UPDATE tool_version SET description = 'x'", "DELETE FROM tool_version"):
        with (
            pytest.raises(ProgrammingError, match="permission denied"),
            tenant_scope(acme.tenant.id),
            connection.cursor() as cursor,
        ):
            cursor.execute(attempt)
