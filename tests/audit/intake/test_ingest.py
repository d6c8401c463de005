"""What ingest stores: pairs, duplicates, conflicts, days, producers, ledger entries."""

import hashlib
import itertools
import json
import struct
import uuid
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from tooltrail.ledger import Kind

from audit.events.instants import microseconds
from audit.index.window import INDEX_DAYS
from audit.log.payload import read_events, unpack
from audit.models import Batch, Gap, Invocation, Producer, RejectedEvent, Trace, Violation
from tenants.scope import tenant_scope
from tests.support.event_requests import lines, new_batch_id, post
from tests.support.factories import (
    Cast,
    make_call,
    make_ingest_key,
    send_events,
)
from tests.support.recount import assert_consistent, leaf_for

VIOLATIONS = [
    {"path": "$.items[3].name", "code": "WRONG_TYPE", "expected": "string", "received": "integer"},
    {"path": "$", "code": "COERCED", "severity": "warning"},
]
GUARD = {"strategy": "coerce-and-warn", "outcome": "coerced", "violations": VIOLATIONS}


def _calls(acme: Cast) -> list[Invocation]:
    with tenant_scope(acme.tenant.id):
        rows = Invocation.objects.for_tenant(acme.tenant.id)
        return list(rows.order_by("started_at", "invocation_id"))


def _call(acme: Cast) -> Invocation:
    (call,) = _calls(acme)
    return call


def _index_of(call: Invocation) -> dict[str, Any]:
    """A call's columns, without the positions of its events and the time of the test."""
    columns = {field.column: getattr(call, field.attname) for field in call._meta.concrete_fields}
    gone = ("tenant_id", "start_batch_id", "start_pos", "end_batch_id", "end_pos", None)
    return {name: value for name, value in columns.items() if name not in gone}


FULL: dict[str, Any] = {
    "tool_version": "3",
    "parent_invocation_id": str(uuid.uuid4()),
    "tool_call_id": "toolu_1",
    "turn_id": "turn-1",
    "run_id": "graph_run_1",
    "workflow_id": "w",
    "collection_id": "hr",
    "document_id": "d",
    "document_version_id": "v",
    "case_id": "crm-7421",
    "idempotency_key": "i",
    "timeouts_ms": 120_000,
    "budget_tokens": 4096,
    "locale": "de-DE",
    "safety_mode": "strict",
    "producer_id": "p",
}


@pytest.mark.parametrize(
    ("output", "attempt"),
    [
        ({"status": "ok", "data": 1, "meta": {"attempt": 2}}, 2),
        ({"status": "error", "error": {"attempt": 3}, "meta": {"attempt": 2}}, 3),
        ({"status": "error", "error": {}, "meta": {"attempt": 2}}, 2),
        ({"status": "ok", "data": 1, "meta": {}}, None),
    ],
)
def test_attempt_is_indexed_for_failed_and_successful_calls(
    acme: Cast, output: dict[str, Any], attempt: int | None
) -> None:
    send_events(acme.tenant, make_call(output=output))
    assert _call(acme).attempt == attempt


def test_every_column_is_filled_from_its_member(acme: Cast) -> None:
    error: dict[str, Any] = {"type": "RATE_LIMIT", "message": "slow down", "code": "too_many"}
    error |= {"retry_after_ms": 1500, "upstream_status": 429, "attempt": 3}
    meta = {"cache_hit": False, "token_usage": {"prompt": 12, "completion": 20}}
    started_at = datetime.now(UTC) - timedelta(minutes=1)
    events = make_call(
        started_at=started_at,
        duration_ms=1234.5678,
        output={"status": "error", "error": error, "meta": meta},
        guard=GUARD,
        **FULL,
    )
    send_events(acme.tenant, events)
    call = _call(acme)
    for name, value in FULL.items():
        assert str(getattr(call, name)) == str(value), name
    assert call.state == "failed"
    assert (call.error_type, call.error_code, call.error_message) == (
        "RATE_LIMIT",
        "too_many",
        "slow down",
    )
    assert (call.retry_after_ms, call.upstream_status, call.attempt) == (1500, 429, 3)
    assert (call.guard_strategy, call.guard_outcome) == ("coerce-and-warn", "coerced")
    assert (call.violation_count, call.prompt_tokens, call.completion_tokens) == (2, 12, 20)
    assert (call.cache_hit, call.duration_us, call.pair_conflict) == (False, 1_234_568, False)
    assert call.started_at == started_at
    assert call.ended_at == datetime.fromisoformat(events[1]["ended_at"])
    with tenant_scope(acme.tenant.id):
        first, second = Violation.objects.for_tenant(acme.tenant.id).order_by("ordinal")
    assert (first.path, first.path_pattern) == ("$.items[3].name", "$.items[*].name")
    assert (first.code, first.severity, first.expected) == ("WRONG_TYPE", "error", "string")
    assert (second.severity, second.outcome, second.found_by) == ("warning", "coerced", "executor")
    assert_consistent(acme.tenant)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("members", "state", "error_type"),
    [
        ({}, "ok", ""),
        ({"output": None}, "ok", ""),
        ({"output": "text"}, "ok", ""),
        ({"is_error": True, "output": None}, "failed", "ERROR"),
        ({"is_error": True, "output": {"error": {"type": "FATAL"}}}, "failed", "ERROR"),
        ({"output": {"status": "error"}}, "failed", "ERROR"),
        ({"output": {"status": "error", "error": {"type": "TIMEOUT"}}}, "failed", "TIMEOUT"),
        ({"output": {"status": "error", "error": {"type": 5}}}, "failed", "ERROR"),
        ({"guard": GUARD}, "ok", ""),
        ({"guard": GUARD | {"outcome": "failed"}}, "failed", "GUARD"),
        ({"guard": GUARD | {"outcome": "error-result"}}, "failed", "GUARD"),
        ({"guard": GUARD | {"outcome": "fallback"}}, "ok", ""),
        (
            {"guard": GUARD | {"outcome": "failed"}}
            | {"output": {"status": "error", "error": {"type": "VALIDATION"}}},
            "failed",
            "VALIDATION",
        ),
    ],
)
def test_failure_state_and_error_type_are_derived(
    acme: Cast, members: dict[str, Any], state: str, error_type: str
) -> None:
    send_events(acme.tenant, make_call(**members))
    call = _call(acme)
    assert (call.state, call.error_type) == (state, error_type)
    assert_consistent(acme.tenant)


@pytest.mark.slow
def test_every_order_and_batching_produces_the_same_index(acme: Cast) -> None:
    """Start, end and a duplicate of each, in every order, in one batch or several.

    Duplicates are equal, so there are 6 orders, each split in 8 ways.
    """
    started_at = datetime.now(UTC) - timedelta(minutes=5)
    start, end = make_call(started_at=started_at, guard=GUARD, tool_version="1", run_id="r")
    indexes = []
    key = make_ingest_key(acme.tenant)
    starts = itertools.combinations(range(4), 2)
    for number, at in enumerate(starts):
        order = [start if place in at else end for place in range(4)]
        for cuts in itertools.product((False, True), repeat=3):
            identity = {"invocation_id": str(uuid.uuid4()), "trace_id": f"t{number}"}
            batches: list[list[dict[str, Any]]] = [[]]
            for event, cut in zip(order, (False, *cuts), strict=True):
                if cut:
                    batches.append([])
                batches[-1].append(event | identity)
            answers = [send_events(acme.tenant, batch, key=key) for batch in batches]
            assert sum(answer["accepted"] for answer in answers) == 2
            assert sum(answer["duplicates"] for answer in answers) == 2
            assert not any(answer["rejected"] for answer in answers)
            indexes.append(identity)
    calls = _calls(acme)
    assert len(calls) == len(indexes) == 6 * 8
    same = [_index_of(call) | {"invocation_id": "", "trace_id": ""} for call in calls]
    assert all(each == same[0] for each in same)
    assert_consistent(acme.tenant)


@pytest.mark.slow
def test_call_is_open_until_its_end_arrives(acme: Cast) -> None:
    start, end = make_call(output={"status": "error", "error": {"type": "FATAL"}})
    send_events(acme.tenant, [start])
    call = _call(acme)
    assert (call.state, call.ended_at, call.duration_us) == ("open", None, None)
    assert_consistent(acme.tenant)
    send_events(acme.tenant, [end])
    assert _call(acme).state == "failed"
    assert_consistent(acme.tenant)


def test_different_event_for_a_stored_start_or_end_is_a_conflict(acme: Cast) -> None:
    start, end = make_call()
    send_events(acme.tenant, [start, end])
    before = _call(acme)
    other = end | {"is_error": True}
    answer = send_events(acme.tenant, [start, other])
    assert (answer["accepted"], answer["duplicates"]) == (0, 1)
    (rejected,) = answer["rejected"]
    assert (rejected["line"], rejected["code"]) == (2, "conflict")
    with tenant_scope(acme.tenant.id):
        (inbox,) = RejectedEvent.objects.for_tenant(acme.tenant.id)
        kept = read_events(acme.tenant.id, [(uuid.UUID(answer["batch_id"]), 1)])
    assert bytes(inbox.raw) == lines([other]).strip()
    # The log keeps both events, so the ledger proves that both were sent.
    assert [each.raw for each in kept.values()] == [bytes(inbox.raw)]
    assert _index_of(_call(acme)) == _index_of(before)
    assert_consistent(acme.tenant)


def test_conflict_within_one_request_is_rejected(acme: Cast) -> None:
    start, end = make_call()
    answer = send_events(acme.tenant, [start, end, start, end | {"duration_ms": 1}])
    assert (answer["accepted"], answer["duplicates"]) == (2, 1)
    assert [(each["line"], each["code"]) for each in answer["rejected"]] == [(4, "conflict")]
    assert _call(acme).duration_us == 20_000
    assert_consistent(acme.tenant)


@pytest.mark.parametrize("in_one_batch", [True, False])
def test_disagreeing_start_and_end_are_marked(acme: Cast, in_one_batch: bool) -> None:
    start, end = make_call(tool_name="a", run_id="r")
    end |= {"tool_name": "b", "run_id": "other"}
    for batch in [[start, end]] if in_one_batch else [[start], [end]]:
        send_events(acme.tenant, batch)
    call = _call(acme)
    assert (call.tool_name, call.run_id, call.pair_conflict) == ("a", "r", True)
    assert_consistent(acme.tenant)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_members_present_in_only_one_event_are_no_conflict(
    acme: Cast, order: tuple[int, int]
) -> None:
    pair = make_call(**FULL)
    only_end = ("run_id", "case_id", "timeouts_ms", "producer_id")
    only_start = ("locale", "parent_invocation_id", "turn_id")
    events = [
        {name: value for name, value in event.items() if name not in missing}
        for event, missing in zip(pair, (only_end, only_start), strict=True)
    ]
    for index in order:
        send_events(acme.tenant, [events[index]])
    call = _call(acme)
    assert not call.pair_conflict
    for name in (*only_end, *only_start):
        assert str(getattr(call, name)) == str(FULL[name])
    assert_consistent(acme.tenant)


MIDNIGHT = datetime.combine(datetime.now(UTC).date(), datetime.min.time(), UTC) - timedelta(days=2)


@pytest.mark.parametrize("in_one_batch", [True, False])
@pytest.mark.parametrize("offset_ms", [-3, 3])
def test_end_with_a_start_time_on_the_next_day_is_paired(
    acme: Cast, in_one_batch: bool, offset_ms: int
) -> None:
    start, end = make_call(started_at=MIDNIGHT + timedelta(milliseconds=offset_ms))
    other_side = MIDNIGHT - timedelta(milliseconds=offset_ms)
    end["started_at"] = other_side.isoformat()
    for batch in [[start, end]] if in_one_batch else [[start], [end], [end]]:
        send_events(acme.tenant, batch)
    call = _call(acme)
    assert (call.state, call.pair_conflict) == ("ok", True)
    assert call.started_at == MIDNIGHT + timedelta(milliseconds=offset_ms)
    assert_consistent(acme.tenant)


def test_trace_over_midnight_has_one_row_per_day(acme: Cast) -> None:
    for minutes in (-10, -5, 5):
        send_events(acme.tenant, make_call(started_at=MIDNIGHT + timedelta(minutes=minutes)))
    with tenant_scope(acme.tenant.id):
        days = list(Trace.objects.for_tenant(acme.tenant.id).order_by("started_on"))
    assert [(day.started_on, day.started_count) for day in days] == [
        ((MIDNIGHT - timedelta(days=1)).date(), 2),
        (MIDNIGHT.date(), 1),
    ]
    assert_consistent(acme.tenant)


def test_second_end_one_day_away_is_rejected(acme: Cast) -> None:
    start, end = make_call(started_at=MIDNIGHT + timedelta(hours=12))
    send_events(acme.tenant, [start])
    ends = [
        end | {"started_at": (MIDNIGHT + timedelta(hours=12 + hours)).isoformat()}
        for hours in (-24, 24)
    ]
    answer = send_events(acme.tenant, ends)
    assert (answer["accepted"], len(answer["rejected"])) == (1, 1)
    assert _call(acme).state == "ok"
    assert_consistent(acme.tenant)


def test_same_id_on_distant_days_is_two_calls(acme: Cast) -> None:
    start, end = make_call(started_at=MIDNIGHT)
    far = end | {"started_at": (MIDNIGHT - timedelta(days=5)).isoformat()}
    send_events(acme.tenant, [start, far])
    assert [call.state for call in _calls(acme)] == ["ok", "open"]
    assert_consistent(acme.tenant)


def test_missing_partition_rejects_only_its_events(
    acme: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process has cached a day whose partition was dropped."""
    gone = datetime.now(UTC).date() - timedelta(days=100)
    INDEX_DAYS.refresh()
    day = gone.toordinal() - date(1970, 1, 1).toordinal()
    monkeypatch.setattr(INDEX_DAYS, "_days", INDEX_DAYS._days | {day})
    old = make_call(started_at=datetime.combine(gone, datetime.min.time(), UTC))
    answer = send_events(acme.tenant, old + make_call())
    assert answer["accepted"] == 2
    assert [each["code"] for each in answer["rejected"]] == ["out_of_range"] * 2
    assert_consistent(acme.tenant)


def _gap(low: int, high: int, **members: Any) -> dict[str, Any]:
    return {
        "type": "gap",
        "producer_id": "p",
        "from_seq": low,
        "to_seq": high,
        "reason": "spool-full",
        "count": high - low + 1,
        **members,
    }


@pytest.mark.slow
def test_producer_row_is_independent_of_event_order(acme: Cast, globex: Cast) -> None:
    events = [
        event | {"producer_id": "p", "producer_seq": seq}
        for seq, event in enumerate([*make_call(), *make_call()])
    ]
    sent = [
        [events[0]],
        [_gap(4, 6)],
        [events[3], events[2]],
        [_gap(4, 6)],
        [events[2]],
        [events[1]],
    ]
    for cast, order in ((acme, sent), (globex, sent[::-1])):
        for batch in order:
            send_events(cast.tenant, batch)
        with tenant_scope(cast.tenant.id):
            (producer,) = Producer.objects.for_tenant(cast.tenant.id)
            (gap,) = Gap.objects.for_tenant(cast.tenant.id)
        assert (producer.first_seq, producer.last_seq, producer.event_count) == (0, 6, 4)
        assert (gap.from_seq, gap.to_seq, gap.lost_count) == (4, 6, 3)
        assert_consistent(cast.tenant)


def test_repeated_gap_is_a_duplicate(acme: Cast) -> None:
    answer = send_events(acme.tenant, [_gap(1, 2), _gap(1, 2), _gap(3, 3)])
    assert (answer["accepted"], answer["duplicates"]) == (2, 1)
    assert send_events(acme.tenant, [_gap(1, 2)])["duplicates"] == 1
    assert_consistent(acme.tenant)


def test_leaves_are_derived_from_the_stored_bytes(acme: Cast) -> None:
    start, end = make_call()
    del end["event_id"]
    events = [start, end, _gap(1, 2, event_id=str(uuid.uuid4()))]
    answer = send_events(acme.tenant, events)
    with tenant_scope(acme.tenant.id):
        (batch,) = Batch.objects.for_tenant(acme.tenant.id)
        stored = read_events(acme.tenant.id, [(batch.batch_id, place) for place in range(4)])
    assert [stored[batch.batch_id, place].ledger_index for place in range(3)] == [0, 1, 2]
    assert len(stored) == 3
    received_us = microseconds(batch.received_at)
    ids = [start["event_id"], str(uuid.uuid5(batch.batch_id, "2")), events[2]["event_id"]]
    calls = [start["invocation_id"], start["invocation_id"], None]
    leaves = b""
    for place, kind in enumerate((Kind.START, Kind.END, Kind.GAP)):
        each = stored[batch.batch_id, place]
        assert each.raw == lines([events[place]]).strip()
        assert each.salt is not None
        assert len(each.salt) == 32
        leaves += leaf_for(kind, ids[place], calls[place], received_us, each.salt, each.raw)
    assert bytes(batch.leaves) == leaves
    assert len({each.salt for each in stored.values()}) == 3
    assert answer["ledger"] == {"first_index": 0, "size": 3}
    assert bytes(batch.body_sha256) == hashlib.sha256(lines(events)[:-1]).digest()


def test_leaf_hash_matches_the_published_formula() -> None:
    """The formula is written out here, without the product's module."""
    salt, raw, event_id, call = b"s" * 32, b'{"a":1}', uuid.UUID(int=1), uuid.UUID(int=2)
    commit = hashlib.sha256(b"\x02" + salt + raw).digest()
    entry = b"\x01\x02" + event_id.bytes + call.bytes
    entry += struct.pack(">QI", 1_700_000_000_000_000, len(raw)) + commit
    assert (
        leaf_for(Kind.END, str(event_id), str(call), 1_700_000_000_000_000, salt, raw)
        == hashlib.sha256(b"\x00" + entry).digest()
    )


def test_batches_are_contiguous_in_the_ledger(acme: Cast, globex: Cast) -> None:
    key = make_ingest_key(acme.tenant)
    sizes = []
    for batch in (make_call(), [], make_call() + make_call(), make_call(is_open=True)):
        send_events(globex.tenant, make_call())
        body = lines(batch) or b"only nonsense"
        sizes.append(post(key, body).json()["ledger"])
    assert sizes == [
        {"first_index": 0, "size": 2},
        {"first_index": 2, "size": 2},
        {"first_index": 2, "size": 6},
        {"first_index": 6, "size": 7},
    ]
    assert_consistent(acme.tenant)


def test_payload_contains_the_exact_lines(acme: Cast) -> None:
    odd = [json.dumps(event, indent=None, separators=(" ,  ", " : ")) for event in make_call()]
    body = ("\r\n\n".join(odd) + "\r").encode()
    answer = post(make_ingest_key(acme.tenant), body, idempotency_key=new_batch_id()).json()
    assert answer["accepted"] == 2
    with tenant_scope(acme.tenant.id):
        (batch,) = Batch.objects.for_tenant(acme.tenant.id)
    assert batch.payload is not None
    raws = [raw for _, raw in unpack(bytes(batch.payload))]
    assert raws == [(line + "\r").encode() for line in odd]
