"""Decisions about calls: stored once, counted in no figure of calls, kept and erased as starts."""

import json
import random
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any, get_args
from uuid import UUID

import pytest
from django.core.management import call_command
from django.db import connection, connections
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tooltrail.events import Decision
from tooltrail.testing import MemoryTrail

from audit.events.redaction import forget_rules
from audit.models import Invocation, RejectedEvent, Trace
from audit.queries.call_list import call_page
from audit.queries.call_query import Reader, parse
from tenants.models import TenantSetting
from tenants.scope import tenant_scope
from tests.support.erasures import erase
from tests.support.event_requests import lines, post
from tests.support.factories import Cast, make_call, make_decision, make_ingest_key, send_events
from tests.support.legal_holds import event_texts, missing_in_ledger, set_hold
from tests.support.recount import assert_consistent
from tests.support.retention import DAY, apply_retention, index_agrees_with_log, set_retention

pytestmark = pytest.mark.usefixtures("clear_principals")

DECISIONS = get_args(Decision)
NOW = datetime.now(UTC)


def rows(cast: Cast, columns: str) -> list[tuple[Any, ...]]:
    """The tenant's decisions, the oldest first."""
    with tenant_scope(cast.tenant.id), connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {columns} FROM decision WHERE tenant_id = %s ORDER BY decided_at, decision_id",
            [cast.tenant.id],
        )
        stored: list[tuple[Any, ...]] = cursor.fetchall()
        return stored


def matches(cast: Cast, query: str) -> list[tuple[UUID, str]]:
    """The calls that a query finds: their ids and states, newest first."""
    parsed = parse(query, Reader(sees_payloads=True))
    assert not parsed.problems
    with tenant_scope(cast.tenant.id):
        page = call_page(parsed.wanted, now=datetime.now(UTC))
    return [(call.invocation_id, call.state) for call in page.calls]


@pytest.mark.slow
@pytest.mark.generated(4)
@pytest.mark.parametrize("decision", DECISIONS)
def test_decision_is_stored_and_counts_in_its_trace_alone(acme: Cast, decision: str) -> None:
    event = make_decision(
        decision,
        by={"kind": "policy", "id": "no-refunds", "name": "No refunds"},
        requested_by="ada",
        reason="over the limit",
        definition_digest="sha256:1",
        violations=[{"path": "$.items[3].n", "code": "WRONG_TYPE", "expected": "number"}],
    )
    answer = send_events(acme.tenant, [event])
    assert (answer["accepted"], answer["duplicates"], answer["rejected"]) == (1, 0, [])
    (row,) = rows(
        acme,
        "decision, by_kind, by_id, by_name, requested_by, reason, definition_digest,"
        " violation_count, paths, codes, expected, invocation_id",
    )
    assert row[:8] == (
        *(decision, "policy", "no-refunds", "No refunds", "ada", "over the limit", "sha256:1", 1),
    )
    assert row[8:11] == (["$.items[*].n"], ["WRONG_TYPE"], ["number"])
    assert row[11] == UUID(event["invocation_id"])
    with tenant_scope(acme.tenant.id):
        assert not Invocation.objects.for_tenant(acme.tenant.id).exists()
        (trace,) = Trace.objects.for_tenant(acme.tenant.id)
    assert (trace.started_count, trace.completed_count, trace.failed_count) == (0, 0, 0)
    assert_consistent(acme.tenant)
    assert index_agrees_with_log(acme)


def test_decision_sent_again_is_a_duplicate_and_another_one_a_conflict(acme: Cast) -> None:
    event = make_decision(producer_id="p", producer_seq=0)
    assert send_events(acme.tenant, [event, event])["duplicates"] == 1
    assert send_events(acme.tenant, [event])["duplicates"] == 1
    answer = send_events(acme.tenant, [event | {"reason": "another"}])
    assert [each["code"] for each in answer["rejected"]] == ["conflict"]
    assert len(rows(acme, "decision")) == 1
    with tenant_scope(acme.tenant.id):
        assert RejectedEvent.objects.for_tenant(acme.tenant.id).count() == 1
    assert index_agrees_with_log(acme)


@pytest.mark.slow
def test_decision_without_ids_is_recognized_in_another_request(acme: Cast) -> None:
    names = ("event_id", "invocation_id")
    event = {name: value for name, value in make_decision().items() if name not in names}
    broken = event | {"decided_at": "yesterday"}
    send_events(acme.tenant, [event])
    answer = send_events(acme.tenant, [broken, event])
    assert (answer["duplicates"], len(answer["rejected"])) == (1, 1)
    assert index_agrees_with_log(acme)
    assert missing_in_ledger(acme) == []


def test_decisions_of_one_provider_call_belong_together(acme: Cast) -> None:
    trail = MemoryTrail(clock=lambda: NOW - timedelta(seconds=30))
    with trail.trace("trace-123", tool_call_id="toolu_1"):
        trail.decision("pay", "awaiting")
    events = [
        make_decision(decision, decided_at=NOW - timedelta(seconds=age), tool_call_id="toolu_1")
        for decision, age in (("awaiting", 20), ("denied", 10))
    ]
    for event in events:
        del event["invocation_id"]
    send_events(acme.tenant, [*trail.events, *events])
    assert len({pk for (pk,) in rows(acme, "invocation_id")}) == 1
    assert [state for _, state in matches(acme, "state:refused")] == ["refused"]
    assert matches(acme, "state:awaiting") == []


@pytest.mark.slow
def test_agent_and_place_of_a_call_that_did_not_run_can_be_asked_for(acme: Cast) -> None:
    trail = MemoryTrail(clock=lambda: NOW - timedelta(seconds=30))
    members = {"agent": "lead", "agent_version": "2", "model": "m-1", "provider": "acme"}
    with trail.trace("trace-123", **members, environment="live", service="shop", principal="ada"):
        trail.decision("pay", "denied")
    unnamed = make_decision("denied", tool_name="search", context={"agent": 7, "conversation": "c"})
    assert send_events(acme.tenant, [*trail.events, unnamed])["rejected"] == []
    columns = "agent, agent_version, model, provider, environment, service, run_id"
    assert sorted(rows(acme, columns), key=str) == [
        ("lead", "2", "m-1", "acme", "live", "shop", None),
        (*(None,) * 6, "c"),
    ]
    query = "state:refused agent:le* agent-version:2 model:m-1 provider:acme environment:live"
    assert [state for _, state in matches(acme, f"{query} service:shop")] == ["refused"]
    assert len(matches(acme, "state:refused NOT agent:*")) == 1
    assert index_agrees_with_log(acme)
    assert_consistent(acme.tenant)


@pytest.mark.slow
def test_reindex_fills_in_the_agents_of_older_decisions(acme: Cast) -> None:
    send_events(acme.tenant, [make_decision("denied", context={"agent": "lead"})])
    with connections["owner"].cursor() as cursor:
        cursor.execute("UPDATE decision SET agent = NULL WHERE tenant_id = %s", [acme.tenant.id])
    assert matches(acme, "state:refused agent:lead") == []
    call_command("reindex", tenant=acme.tenant.slug)
    assert len(matches(acme, "state:refused agent:lead")) == 1
    assert index_agrees_with_log(acme)


def test_camel_case_names_are_accepted(acme: Cast) -> None:
    event = {
        "type": "toolCallDecision",
        "turnId": "turn-1",
        "toolName": "search",
        "toolCallId": "toolu_1",
        "decidedAt": NOW.isoformat(),
        "decision": "overBudget",
        "requestedBy": "ada",
        "definitionDigest": "sha256:1",
    }
    assert send_events(acme.tenant, [event])["accepted"] == 1
    assert rows(acme, "trace_id, requested_by") == [("turn-1", "ada")]


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ({"decision": "maybe"}, "invalid_event"),
        ({"by": {"kind": "robot"}}, "invalid_event"),
        ({"decided_at": None}, "invalid_event"),
        ({"trace_id": None}, "invalid_event"),
        ({"violations": [{"path": "$", "code": "OTHER"}]}, "invalid_event"),
        ({"decided_at": (NOW + 2 * DAY).isoformat()}, "in_future"),
        ({"decided_at": (NOW - 400 * DAY).isoformat()}, "out_of_range"),
        ({"auth": "Bearer x"}, "auth_not_allowed"),
    ],
)
def test_invalid_decision_goes_to_the_inbox(acme: Cast, members: dict[str, Any], code: str) -> None:
    answer = send_events(acme.tenant, [make_decision() | members, make_decision()])
    assert [each["code"] for each in answer["rejected"]] == [code]
    assert answer["accepted"] == 1
    assert len(rows(acme, "decision")) == 1


@pytest.mark.slow
def test_state_of_a_call_follows_from_its_latest_decision_and_its_start(acme: Cast) -> None:
    ran, waiting, refused, allowed = (str(uuid.uuid4()) for _ in range(4))
    ages = iter(range(60, 0, -5))

    def decide(decision: str, of: str, **members: Any) -> dict[str, Any]:
        at = NOW - timedelta(seconds=next(ages))
        return make_decision(decision, decided_at=at, invocation_id=of, **members)

    policy = {"kind": "policy", "id": "p-1"}
    person = {"kind": "person", "id": "ada"}
    call = make_call(invocation_id=ran, started_at=NOW - timedelta(seconds=50))
    send_events(
        acme.tenant,
        [
            decide("awaiting", ran),
            decide("approved", ran, by=person),
            *call,
            decide("awaiting", waiting),
            decide("awaiting", refused),
            decide("denied", refused, by=policy),
            decide("approved", allowed, by=policy),
        ],
    )
    assert matches(acme, "") == [(UUID(ran), "ok")], "only calls that ran, unless asked for"
    assert matches(acme, "state:refused") == [(UUID(refused), "refused")]
    assert matches(acme, "state:awaiting") == [(UUID(waiting), "awaiting")]
    assert matches(acme, "state:approved") == [(UUID(allowed), "approved")]
    assert matches(acme, "decision:denied by:p-1") == [(UUID(refused), "refused")]
    assert matches(acme, "decision:approved by:person") == [(UUID(ran), "ok")]
    assert {pk for pk, _ in matches(acme, "by:p*")} == {
        UUID(one) for one in (ran, refused, allowed)
    }
    assert matches(acme, "decision:denied by:person") == []
    assert {state for _, state in matches(acme, "NOT state:refused")} == (
        {"ok", "awaiting", "approved"}
    )
    assert matches(acme, 'state:refused args.city:"London"') == [(UUID(refused), "refused")]
    assert_consistent(acme.tenant)
    assert index_agrees_with_log(acme)


@pytest.mark.slow
def test_start_with_the_same_provider_id_is_the_decided_call(acme: Cast) -> None:
    event = make_decision("approved", tool_call_id="toolu_1")
    del event["invocation_id"]
    send_events(acme.tenant, [event, *make_call(tool_call_id="toolu_1")])
    assert matches(acme, "state:approved") == []
    assert [state for _, state in matches(acme, "decision:approved")] == ["ok"]
    erase(acme, "trace:trace-123")
    assert event_texts(acme) == [b"", b"", b""]


def test_redaction_covers_what_quotes_the_arguments(acme: Cast) -> None:
    mail = r"[a-z.]+@[a-z.]+"
    with tenant_scope(acme.tenant.id):
        TenantSetting.objects.update_or_create(
            tenant=acme.tenant,
            defaults={"redact_names": ["iban", "by", "violations"], "redact_patterns": [mail]},
        )
    forget_rules(acme.tenant.id)
    violation = {"path": "$.iban", "code": "WRONG_TYPE", "expected": "string", "received": "DE89"}
    event = make_decision(
        by={"kind": "person", "id": "ada@example.org", "name": "ada@example.org"},
        reason="ada@example.org may not",
        args={"iban": "DE89", "city": "London"},
        violations=[violation],
    )
    assert send_events(acme.tenant, [event])["accepted"] == 1
    (raw,) = event_texts(acme)
    stored = json.loads(raw)
    assert "DE89" not in raw.decode()
    assert stored["by"] == {"kind": "person", "id": "ada@example.org", "name": "[redacted]"}
    assert "ada@" not in stored["reason"]
    assert stored["args"]["city"] == "London"
    assert rows(acme, "reason, codes") == [(stored["reason"], ["WRONG_TYPE"])]
    assert index_agrees_with_log(acme)


def test_member_names_of_decisions_stay_subject_to_redaction_in_other_events(acme: Cast) -> None:
    with tenant_scope(acme.tenant.id):
        TenantSetting.objects.update_or_create(
            tenant=acme.tenant, defaults={"redact_names": ["by", "requestedby"]}
        )
    forget_rules(acme.tenant.id)
    start, _ = make_call(by={"id": "secret"}, requested_by="secret")
    send_events(acme.tenant, [start])
    assert b"secret" not in event_texts(acme)[0]


@pytest.mark.slow
def test_erasure_removes_calls_that_never_ran(acme: Cast) -> None:
    secret = "Ada Lovelace"
    violation = {"path": "$.a", "code": "WRONG_TYPE", "expected": secret, "received": secret}
    pk = str(uuid.uuid4())
    mine = [
        make_decision(
            decision,
            decided_at=NOW - age * DAY,
            invocation_id=pk,
            case_id="mine" if decision == "denied" else None,
            args={"who": secret},
            reason=secret,
            violations=[violation],
        )
        for decision, age in (("awaiting", 5), ("denied", 0))
    ]
    other = make_decision(case_id="other", reason="kept")
    send_events(acme.tenant, [*mine, other])
    done = erase(acme)
    assert (done.erased_calls, done.erased_events) == (1, 2)
    texts = event_texts(acme)
    assert [bool(text) for text in texts] == [False, False, True]
    assert sorted(rows(acme, "reason, expected"), key=str) == [
        *(("kept", []), (None, []), (None, [])),
    ]
    assert secret not in str(rows(acme, "decision::text"))
    assert missing_in_ledger(acme) == []
    assert index_agrees_with_log(acme)


@pytest.mark.slow
def test_hold_keeps_decisions(acme: Cast) -> None:
    at = NOW - 3 * DAY
    held = make_decision(case_id="held", decided_at=at)
    ran, _ = make_call(case_id="held", tool_call_id="toolu_1", started_at=at)
    linked = make_decision("approved", tool_call_id="toolu_1", decided_at=at)
    free = make_decision(trace_id="free", decided_at=at)
    send_events(acme.tenant, [held, ran, linked, free])
    set_hold(acme, case_id="held")
    set_retention(acme, payload_days=1)
    with connections["owner"].cursor() as cursor:
        cursor.execute(
            "UPDATE batch SET received_at = %s WHERE tenant_id = %s AND NOT is_own",
            [at, acme.tenant.id],
        )
    apply_retention(acme)
    assert [bool(text) for text in event_texts(acme)] == [True, True, True, False]
    done = erase(acme, "tool:get_weather")
    assert done.erased_events == 0
    assert [bool(text) for text in event_texts(acme)] == [True, True, True, False]


@pytest.mark.slow
def test_retention_deletes_old_decisions_from_the_index_and_the_log(acme: Cast) -> None:
    old = make_decision(decided_at=NOW - 20 * DAY, trace_id="old", reason="old")
    new = make_decision(trace_id="new", reason="new")
    for event in (old, new):
        send_events(acme.tenant, [event])
    set_retention(acme, payload_days=7, index_days=10)
    with connections["owner"].cursor() as cursor:
        cursor.execute(
            "UPDATE batch SET received_at = %s WHERE tenant_id = %s AND first_index = 0",
            [NOW - 20 * DAY, acme.tenant.id],
        )
    apply_retention(acme)
    assert rows(acme, "reason") == [("new",)]
    assert [bool(text) for text in event_texts(acme)] == [False, True]
    assert missing_in_ledger(acme) == []


@pytest.mark.slow
def test_order_and_requests_do_not_matter(acme: Cast, globex: Cast) -> None:
    rng = random.Random(7)
    events: list[dict[str, Any]] = []
    for number in range(40):
        pk, trace = str(uuid.uuid4()), f"trace-{number % 5}"
        at = NOW - timedelta(minutes=rng.randrange(300))
        events += [
            make_decision(
                rng.choice(DECISIONS),
                decided_at=at - timedelta(seconds=10 - step),
                invocation_id=pk,
                trace_id=trace,
                tool_name=rng.choice("ab"),
                run_id=rng.choice(("r1", "r2", None)),
            )
            for step in range(rng.randrange(3))
        ]
        if rng.random() < 0.6:
            events += make_call(started_at=at, invocation_id=pk, trace_id=trace)
    send_events(acme.tenant, events)
    rng.shuffle(events)
    while events:
        send_events(globex.tenant, events[:7])
        events = events[7:]
    for cast in (acme, globex):
        assert_consistent(cast.tenant)
        assert index_agrees_with_log(cast)
    columns = "decided_at, decision, invocation_id, trace_id"
    assert rows(acme, columns) == rows(globex, columns)
    for query in ("state:refused", "state:awaiting", "state:approved"):
        assert matches(acme, query) == matches(globex, query)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
MEMBERS = st.fixed_dictionaries(
    {},
    optional={
        "decision": st.sampled_from(DECISIONS) | JSON,
        "by": st.fixed_dictionaries(
            {"kind": st.sampled_from(("person", "policy", "guardrail"))},
            optional={"id": st.text(max_size=130), "name": st.text(max_size=300)},
        )
        | JSON,
        "reason": st.text(max_size=600) | JSON,
        "requested_by": st.text(max_size=130) | JSON,
        "definition_digest": st.text(max_size=130) | JSON,
        "violations": st.lists(
            st.fixed_dictionaries(
                {"path": st.text(max_size=20), "code": st.sampled_from(("WRONG_TYPE", "COERCED"))},
                optional={"expected": st.text(), "received": st.text()},
            ),
            max_size=3,
        )
        | JSON,
        "args": JSON,
        "tool_call_id": st.text(max_size=130) | JSON,
        "tool_version": st.integers() | JSON,
        "invocation_id": st.uuids().map(str) | JSON,
        "parent_invocation_id": st.uuids().map(str) | JSON,
        "event_id": st.uuids().map(str) | JSON,
        "call_id": st.text(max_size=130) | JSON,
        "decided_at": st.just((NOW - DAY).isoformat()) | JSON,
        "run_id": st.text(max_size=130),
        "ingestion_run_id": st.text(max_size=130) | JSON,
    },
)


@pytest.mark.sampled("arbitrary input to the database", 2)
@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(MEMBERS, min_size=1, max_size=8))
def test_any_decision_is_stored_or_in_the_inbox(acme: Cast, drawn: list[dict[str, Any]]) -> None:
    """Nothing is lost and nothing is a 500, whatever the members are."""
    key = make_ingest_key(acme.tenant)
    body = lines([make_decision() | members for members in drawn])
    answer = post(key, body)
    assert answer.status_code == 200, answer.content
    document = json.loads(answer.content)
    counted = document["accepted"] + document["duplicates"] + len(document["rejected"])
    assert counted == len(drawn)
    assert {each["code"] for each in document["rejected"]} <= {"invalid_event", "conflict"}
