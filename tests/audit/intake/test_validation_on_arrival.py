"""Outputs validated on arrival: results are in the log, counted once, marked as the server's."""

import json
import random
import time
import uuid
from collections import Counter
from typing import Any
from unittest.mock import Mock

import pytest
from django.test import Client
from tooltrail.guard import validate
from tooltrail.ledger import Kind
from tooltrail.redact_text import MARK

from audit.events.judgement import judged_output
from audit.index.reindex import Report, reindex
from audit.intake import arrival
from audit.ledger.recompute import StoredBatch, remake
from audit.log.payload import unpack
from audit.models import Batch, Invocation, Violation
from audit.retention.hold_match import read_batch
from tenants.keys import create_key
from tenants.models import Scope, Tenant
from tenants.scope import tenant_scope
from tests.support.arrival_checks import OUTPUT_SCHEMA, VIOLATING_OUTPUT, register_checked_tool
from tests.support.call_histories import Event, some_call
from tests.support.factories import Cast, make_call, make_tenant
from tests.support.index_contents import index_contents
from tests.support.random_requests import random_requests, record_request
from tests.support.recount import assert_consistent
from tools_registry.changes import Publisher, timeline
from tools_registry.models import Tool
from tools_registry.tools import check_on_arrival

FINE = {"status": "ok", "data": {"celsius": 1, "days": [1]}, "meta": {"took_ms": 1}}


@pytest.fixture(autouse=True)
def known_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrival, "BELIEVED_FOR", 0.0)


def violations_of(tenant: Tenant) -> list[Violation]:
    with tenant_scope(tenant.id):
        return list(Violation.objects.for_tenant(tenant.id).order_by("invocation_id", "ordinal"))


def logged(tenant: Tenant) -> list[list[dict[str, Any]]]:
    """The log's events, batch by batch."""
    with tenant_scope(tenant.id):
        batches = Batch.objects.for_tenant(tenant.id).order_by("first_index")
        return [
            [json.loads(raw) for _, raw in unpack(bytes(batch.payload or b""))] for batch in batches
        ]


def reread(tenant: Tenant) -> Report:
    return reindex(tenant.id, repair=False, progress=lambda done, size: None)


def test_findings_equal_the_violations_of_the_guard(acme: Cast) -> None:
    register_checked_tool(acme.tenant)
    answer = record_request(
        acme.tenant, [*make_call(output=VIOLATING_OUTPUT), *make_call(output=FINE)]
    )
    assert answer["accepted"] == 4
    expected = validate(VIOLATING_OUTPUT["data"], OUTPUT_SCHEMA).violations
    violations = violations_of(acme.tenant)
    assert [(each.path, each.code, each.expected, each.received) for each in violations] == [
        (each.path, each.code, each.expected, each.received) for each in expected
    ]
    assert {(each.found_by, each.strategy, each.outcome) for each in violations} == {
        ("server", "on-arrival", "unguarded")
    }
    assert {each.path_pattern for each in violations} == {"$.celsius", "$.days[*]"}
    with tenant_scope(acme.tenant.id):
        states = Invocation.objects.for_tenant(acme.tenant.id).values_list(
            "state", "violation_count"
        )
        assert sorted(states) == [("ok", 0), ("ok", len(expected))], (
            "a violation found on arrival does not fail the call"
        )
    assert_consistent(acme.tenant)


def test_finding_is_a_log_event_after_the_sent_events(acme: Cast) -> None:
    register_checked_tool(acme.tenant)
    start, end = make_call(output=VIOLATING_OUTPUT)
    answer = record_request(acme.tenant, [start, end])
    [[*sent, finding]] = logged(acme.tenant)
    assert sent == [start, end]
    assert answer["ledger"] == {"first_index": 0, "size": 3}
    assert (finding["type"], finding["end_position"], finding["tool_version"]) == ("finding", 1, 1)
    assert finding["invocation_id"] == start["invocation_id"]
    assert finding["violations"][0]["message"]
    with tenant_scope(acme.tenant.id):
        batch = Batch.objects.for_tenant(acme.tenant.id).get()
    stored = StoredBatch(
        batch.batch_id,
        batch.received_at,
        0,
        3,
        bytes(batch.leaves),
        bytes(batch.payload or b""),
        False,
    )
    kinds = [each.entry and each.entry.kind for each in remake(stored)]
    assert kinds == [Kind.START, Kind.END, Kind.FINDING]
    held_by = {
        (each.invocation_id, each.candidate and each.candidate.day) for each in read_batch(stored)
    }
    assert len(held_by) == 1, "holds and erasures of a call cover its finding, too"


@pytest.mark.parametrize(
    "change",
    [
        {"guard": {"strategy": "throw", "outcome": "passed", "violations": []}},
        {"output": {"status": "error", "error": {"type": "FATAL", "message": "no"}}},
        {"output": None},
        {"output": {"status": "ok", "data": MARK}},
        {"output": {"status": "ok", "data": {"celsius": 1, "days": [MARK]}}},
        {"removed": [{"path": "$.output.data", "reason": "not captured"}]},
        {"tool_name": "another"},
    ],
    ids=str,
)
def test_guarded_failed_or_withheld_outputs_are_not_validated(
    acme: Cast, change: dict[str, Any]
) -> None:
    register_checked_tool(acme.tenant)
    start, end = make_call(output=VIOLATING_OUTPUT)
    assert record_request(acme.tenant, [start, end | change])["accepted"] == 2
    assert violations_of(acme.tenant) == []


def test_output_with_span_like_members_is_validated(acme: Cast) -> None:
    register_checked_tool(acme.tenant)
    record_request(
        acme.tenant, make_call(output={"status": "ok", "data": {"otlp": 1, "exporter": "otlp"}})
    )
    assert [one.path for one in violations_of(acme.tenant)] == ["$.celsius"]


def test_validation_on_arrival_is_off_by_default_and_can_be_turned_off(acme: Cast) -> None:
    tool = register_checked_tool(acme.tenant, is_on=False)
    record_request(acme.tenant, make_call(output=VIOLATING_OUTPUT))
    assert violations_of(acme.tenant) == []
    with tenant_scope(acme.tenant.id):
        check_on_arrival(tool, Publisher(key_id="key"), is_on=True)
        check_on_arrival(tool, Publisher(key_id="key"), is_on=False)
    record_request(acme.tenant, make_call(output=VIOLATING_OUTPUT))
    assert violations_of(acme.tenant) == []


@pytest.mark.slow
def test_repeated_end_adds_no_findings(acme: Cast) -> None:
    register_checked_tool(acme.tenant)
    start, end = make_call(output=VIOLATING_OUTPUT)
    record_request(acme.tenant, [end, end])
    before = len(violations_of(acme.tenant))
    assert before
    for events in ([start], [end], [end, start]):
        record_request(acme.tenant, events)
    at_odds = record_request(acme.tenant, [end | {"duration_ms": 7}])
    assert at_odds["rejected"][0]["code"] == "conflict"
    assert len(violations_of(acme.tenant)) == before
    assert [event["type"] for batch in logged(acme.tenant) for event in batch].count("finding") == 1
    assert_consistent(acme.tenant)
    assert reread(acme.tenant).is_clean


@pytest.mark.sampled("arbitrary input to the database", 2)
@pytest.mark.slow
def test_every_event_order_produces_the_same_index_and_matches_the_log() -> None:
    rng = random.Random()
    calls = [some_call(rng, number) for number in range(6)]
    calls += [broken_call(rng, number) for number in range(6, 9)]
    events = [event for call in calls for event in call]
    expected: dict[str, list[str]] | None = None
    for number in range(40):
        tenant = make_tenant("arrivals")
        for name in ("a", "ä"):
            register_checked_tool(tenant, name=name)
        seed = rng.getrandbits(32)
        for each in random_requests(random.Random(seed), events):
            assert not record_request(tenant, each)["rejected"], seed
        index = index_contents(tenant)
        expected = expected or index
        assert index == expected, seed
        if number % 10 == 0:
            assert_consistent(tenant)
            report = reread(tenant)
            assert report.is_clean, report.comparison.examples
    assert expected is not None
    assert sum('"found_by": "server"' in row for row in expected["violation"]) >= 9


def broken_call(rng: random.Random, number: int) -> list[Event]:
    events = make_call(
        invocation_id=str(uuid.UUID(int=rng.getrandbits(128), version=4)),
        tool_name="a",
        output=VIOLATING_OUTPUT,
    )
    return [
        event | {"producer_id": f"p{number % 2}", "producer_seq": 2 * number + place}
        for place, event in enumerate(events)
    ]


def test_executor_cannot_send_a_finding(acme: Cast) -> None:
    register_checked_tool(acme.tenant)
    record_request(acme.tenant, make_call(output=VIOLATING_OUTPUT))
    [[*_, finding]] = logged(acme.tenant)
    answer = record_request(acme.tenant, [finding])
    assert (answer["accepted"], answer["rejected"][0]["code"]) == (0, "invalid_event")


def test_texts_postgresql_cannot_store_are_replaced(acme: Cast) -> None:
    register_checked_tool(
        acme.tenant, output_schema={"type": "object", "additionalProperties": False}
    )
    output = {"status": "ok", "data": {"a\0b": 1, "\ud800": 2}}
    record_request(acme.tenant, make_call(output=output))
    assert len(violations_of(acme.tenant)) == 2
    assert reread(acme.tenant).is_clean


@pytest.mark.parametrize(
    ("items", "wrong"),
    [
        ({"enum": [[n] for n in range(3_000)]}, [[-1]] * 2_000),
        ({"enum": [f"s{n}" for n in range(3_000)]}, ["x"] * 20_000),
        ({"anyOf": [{"const": n} for n in range(300)]}, [-1] * 10_000),
        ({"anyOf": [{"type": "object", "required": [f"r{n}"]} for n in range(300)]}, [{}] * 2_000),
        ({"uniqueItems": True, "contains": {"const": 1}}, [[[0]] * 400] * 40),
    ],
)
def test_validation_of_a_small_event_is_bounded_in_time(
    acme: Cast, items: dict[str, Any], wrong: list[Any]
) -> None:
    """3 KB used to cost 3.5 s of processor time, 12 KB 13.6 s, and all others waited."""
    schema = {"type": "object", "properties": {"data": {"type": "array", "items": items}}}
    register_checked_tool(acme.tenant, output_schema=schema)
    output = {"status": "ok", "data": wrong, "meta": {"took_ms": 1}}
    events = make_call(output=output)
    began = time.thread_time()
    record_request(acme.tenant, events)
    elapsed = time.thread_time() - began
    violations = violations_of(acme.tenant)
    assert elapsed < 3  # 0.3 s, the time to store it, and a slower machine
    assert violations


def test_explanations_stop_at_the_work_limit(acme: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrival, "REQUEST_STEPS", 95)
    register_checked_tool(acme.tenant)
    record_request(
        acme.tenant, [*make_call(output=VIOLATING_OUTPUT), *make_call(output=VIOLATING_OUTPUT)]
    )
    counts = Counter((each.path, each.received) for each in violations_of(acme.tenant))
    assert counts == {
        ("$.celsius", "undefined"): 2,
        ("$.days[1]", "string"): 1,
        ("$.days[3]", "string"): 1,
        ("$", "more was not explained"): 1,
    }
    monkeypatch.setattr(arrival, "VERDICT_STEPS", 10)
    monkeypatch.setattr(arrival, "REQUEST_STEPS", 0)
    read = Mock(wraps=judged_output)
    monkeypatch.setattr(arrival, "judged_output", read)
    record_request(
        acme.tenant, [event for _ in range(3) for event in make_call(output=VIOLATING_OUTPUT)]
    )
    assert read.call_count == 1, "reading an output counts as work, too"
    counts = Counter((each.path, each.received) for each in violations_of(acme.tenant))
    monkeypatch.setattr(arrival, "EVENT_MAX_BYTES", 10)
    record_request(acme.tenant, make_call(output=VIOLATING_OUTPUT))
    assert len(violations_of(acme.tenant)) == counts.total()


@pytest.mark.slow
def test_editor_toggles_validation_on_arrival_and_changes_are_recorded(acme: Cast) -> None:
    tool = register_checked_tool(acme.tenant, is_on=False)
    client, viewer = Client(), Client()
    client.force_login(acme.editor)
    viewer.force_login(acme.viewer)
    address = f"/tools/{tool.pk}/arrivals"
    assert viewer.post(address, {"on": "1"}).status_code == 403
    client.post(address, {"on": "1", "reason": "Old executors."})
    page = viewer.get(f"/tools/{tool.pk}").content.decode()
    assert "Validation on arrival turned on" in page
    assert "Old executors." in page
    record_request(acme.tenant, make_call(output=VIOLATING_OUTPUT))
    client.post(address)
    with tenant_scope(acme.tenant.id):
        changes = timeline(tool, size=2)
        assert [change.kind for change in changes] == ["checks_off", "checks_on"]
        assert {change.user_name for change in changes} == {acme.editor.username}
    shown = viewer.get("/violations/?range=24h").content.decode()
    assert "detected by the server" in shown
    _, key = create_key(acme.tenant, "reader", [Scope.READ])
    api = Client(headers={"Authorization": f"Bearer {key}"})
    call_id = str(violations_of(acme.tenant)[0].invocation_id)
    violations = api.get(f"/api/v1/calls/{call_id}").json()["violations"]
    assert {each["found_by"] for each in violations} == {"server"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schema", "expected"),
    [(None, "have no schema"), ({"pattern": "^(?!a)"}, "cannot be used for validation")],
)
def test_schema_that_cannot_be_validated_against_is_reported(
    acme: Cast, schema: Any, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tools_registry import versions

    monkeypatch.setattr(versions, "judging_problems", lambda contract, **_: {})
    tool = register_checked_tool(acme.tenant, is_on=False, output_schema=schema)
    client = Client()
    client.force_login(acme.editor)
    answer = client.post(f"/tools/{tool.pk}/arrivals", {"on": "1"}, follow=True)
    assert expected in answer.content.decode()
    with tenant_scope(acme.tenant.id):
        check_on_arrival(Tool.objects.get(), Publisher(acme.editor), is_on=True)
    assert "Nothing is validated" in client.get(f"/tools/{tool.pk}").content.decode()
    record_request(acme.tenant, make_call(output=VIOLATING_OUTPUT))
    assert violations_of(acme.tenant) == []
