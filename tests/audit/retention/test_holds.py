"""Legal holds: held calls outlive their retention; after the release they are deleted."""

import json
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
import uuid_utils.compat
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from audit.index.window import INDEX_DAYS
from audit.log.payload import read_events
from audit.models import Batch, Invocation, LegalHold, RejectedEvent, Trace, Violation
from audit.retention import retention
from audit.retention.hold_match import covers_line
from tenants.keys import create_key
from tenants.models import Scope
from tenants.scope import tenant_scope
from tests.support.event_requests import post
from tests.support.factories import (
    Cast,
    make_call,
    make_ingest_key,
    send_events,
)
from tests.support.ledger_log import as_owner
from tests.support.legal_holds import event_texts, missing_in_ledger, set_hold
from tests.support.pages import signed_in
from tests.support.retention import (
    DAY,
    apply_retention,
    index_agrees_with_log,
    recorded_actions,
    rows_until,
    send_old_calls,
    send_violating_calls,
    set_retention,
    tenant_setting,
)


def release(cast: Cast, one: LegalHold) -> None:
    address = reverse("hold_release", args=[one.id])
    answer = signed_in(cast.admin).post(address, {"reason": "settled"}, follow=True)
    assert "was released" in answer.content.decode()


def send_old(cast: Cast, events: list[dict[str, Any]], age: timedelta) -> None:
    """Store one batch that arrived `age` ago."""
    answer = send_events(cast.tenant, events)
    as_owner(
        "UPDATE batch SET received_at = %s WHERE tenant_id = %s AND batch_id = %s",
        [timezone.now() - age, cast.tenant.id, answer["batch_id"]],
    )


CALLS: list[dict[str, Any]] = [
    {"trace_id": "trace-held", "case_id": "case-7", "tool_name": "search"},
    {"trace_id": "trace-other", "case_id": "case-8", "tool_name": "weather"},
]


@pytest.mark.generated(2)
@pytest.mark.slow
@pytest.mark.parametrize(
    "covers",
    [
        {"trace_id": "trace-held"},
        {"case_id": "case-7"},
        {"tool_name": "search"},
        {"tool_name": "search", "case_id": "case-7", "trace_id": "trace-held"},
    ],
)
def test_held_payloads_outlive_retention_until_the_release(
    acme: Cast, covers: dict[str, str]
) -> None:
    at = timezone.now() - 9 * DAY
    (start, end), (other, _) = (make_call(started_at=at, **call) for call in CALLS)
    end.pop("case_id")  # an end need not repeat it
    send_old(acme, [other, start], 9 * DAY)
    send_old(acme, [end], 9 * DAY)
    send_old_calls(acme, 9 * DAY)
    one = set_hold(acme, **covers)
    set_retention(acme, payload_days=5)
    apply_retention(acme)
    left = event_texts(acme)
    assert [bool(each) for each in left] == [False, True, True, False, False]
    assert b"trace-held" in left[1]
    assert index_agrees_with_log(acme)
    assert missing_in_ledger(acme) == []
    action = recorded_actions(acme, "retention.payloads")
    assert sum(each["events"] for each in action) == 3
    apply_retention(acme)
    assert len(recorded_actions(acme, "retention.payloads")) == len(action), (
        "held events are not recorded again"
    )
    release(acme, one)
    apply_retention(acme)
    assert not any(event_texts(acme))
    assert index_agrees_with_log(acme)
    assert missing_in_ledger(acme) == []
    assert sum(each["events"] for each in recorded_actions(acme, "retention.payloads")) == 5


def test_time_range_holds_calls_started_inside(acme: Cast) -> None:
    now = timezone.now().replace(second=0, microsecond=0)
    for days in (9, 8, 7):
        at = now - days * DAY
        send_old(acme, make_call(started_at=at, trace_id=f"of-{days}"), days * DAY)
    since, until = (f"{now - days * DAY:%Y-%m-%dT%H:%M}" for days in (8, 7))
    set_hold(acme, since=since, until=until)
    set_retention(acme, payload_days=5)
    apply_retention(acme)
    assert [bool(each) for each in event_texts(acme)] == [False, False, True, True, False, False]


@pytest.mark.slow
def test_call_under_two_holds_is_kept_until_both_are_released(acme: Cast) -> None:
    send_old_calls(acme, 9 * DAY)
    first, second = set_hold(acme, trace_id="trace-123"), set_hold(acme, tool_name="get_weather")
    set_retention(acme, payload_days=5)
    apply_retention(acme)
    release(acme, first)
    apply_retention(acme)
    assert all(event_texts(acme))
    release(acme, second)
    apply_retention(acme)
    assert not any(event_texts(acme))


def test_call_missing_in_the_index_is_held_by_its_events(acme: Cast) -> None:
    send_old(acme, make_call(started_at=timezone.now() - 9 * DAY, **CALLS[0]), 9 * DAY)
    as_owner("DELETE FROM invocation WHERE tenant_id = %s", [acme.tenant.id])
    set_hold(acme, trace_id="trace-held")
    set_retention(acme, payload_days=5)
    apply_retention(acme)
    assert all(event_texts(acme))


def test_damaged_payload_is_kept_while_a_hold_exists(acme: Cast) -> None:
    send_old_calls(acme, 9 * DAY)
    as_owner(
        "UPDATE batch SET payload = '\\x00' WHERE tenant_id = %s AND NOT is_own", [acme.tenant.id]
    )
    set_hold(acme, trace_id="whatever")
    set_retention(acme, payload_days=5)
    apply_retention(acme)
    with tenant_scope(acme.tenant.id):
        batches = Batch.objects.for_tenant(acme.tenant.id).filter(is_own=False)
        assert [each.payload is not None for each in batches] == [True]


def test_held_rejected_events_keep_their_text(acme: Cast) -> None:
    then = timezone.now() - 5 * DAY
    raws = [
        b'{"traceId": "trace-held", broken',
        b'{"trace_id": "trace-other", broken',
        '{"trace_id": "schrödinger"'.encode(),
        b'{"trace_id": "schr\\u00f6dinger"',
    ]
    ids = []
    with tenant_scope(acme.tenant.id):
        for number, raw in enumerate(raws):
            ids.append(
                UUID(int=(int(then.timestamp() * 1000) << 80) | (7 << 76) | (2 << 62) | number)
            )
            RejectedEvent.objects.create(
                tenant_id=acme.tenant.id,
                id=ids[-1],
                received_at=then,
                batch_id=uuid_utils.compat.uuid7(),
                line=1,
                code="not_json",
                message="expected value",
                raw=raw,
                raw_length=len(raw),
            )
    one, other = set_hold(acme, trace_id="trace-held"), set_hold(acme, trace_id="schrödinger")
    set_retention(acme, payload_days=2)
    apply_retention(acme)
    with tenant_scope(acme.tenant.id):
        lines = RejectedEvent.objects.for_tenant(acme.tenant.id)
        assert [bytes(lines.get(id=pk).raw) for pk in ids] == [raws[0], b"", raws[2], raws[3]]
    release(acme, one)
    release(acme, other)
    apply_retention(acme)
    with tenant_scope(acme.tenant.id):
        assert {bytes(each.raw) for each in lines.all()} == {b""}


CASES = ["Müller", "a&b", "a/b", 'say "hi"', "C:\\temp", "two\nlines", "\U0001f600 case"]
UPPER = {"&": "\\u0026", "/": "\\/", "ü": "\\u00FC", "\n": "\\u000A", "c": "\\u0063"}


def spellings(case: str) -> list[str]:
    """The case as JSON, as encoders of several languages write it."""
    plain = json.dumps(case, ensure_ascii=False)
    upper = "".join(UPPER.get(each, each) for each in plain)
    return [plain, json.dumps(case), upper, json.dumps(json.dumps(case)), json.dumps(upper)]


@pytest.mark.parametrize("case", CASES)
def test_rejected_event_is_held_despite_json_escapes(case: str) -> None:
    now = timezone.now()
    for written in spellings(case):
        for raw in (f'{{"case_id": {written}, broken', f'{{"case_id": {written}}}'):
            assert covers_line([LegalHold(case_id=case)], raw.encode(), now), raw
            assert not covers_line([LegalHold(case_id="another")], raw.encode(), now)


def test_rejected_event_is_held_by_its_indexed_text() -> None:
    """The index's substitute for a text that it cannot store is not part of the line."""
    now = timezone.now()
    raw = json.dumps(make_call(case_id="a\x00b", started_at=now - DAY)[0]).encode()
    assert covers_line([LegalHold(case_id="a\ufffdb")], raw, now)
    assert not covers_line([LegalHold(case_id="a\ufffdb", until=now - 2 * DAY)], raw, now)
    assert not covers_line([], raw, now)


def test_many_held_rejected_events_do_not_block_retention_of_later_ones(
    acme: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "_READ_LINES", 2)
    then = timezone.now() - 5 * DAY
    with tenant_scope(acme.tenant.id):
        for number in range(7):
            RejectedEvent.objects.create(
                tenant_id=acme.tenant.id,
                id=UUID(int=(int(then.timestamp() * 1000) << 80) | (7 << 76) | (2 << 62) | number),
                received_at=then,
                batch_id=uuid_utils.compat.uuid7(),
                line=1,
                code="not_json",
                message="expected value",
                raw=b"of case-7" if number < 6 else b"of another",
                raw_length=10,
            )
    set_hold(acme, case_id="case-7")
    set_retention(acme, payload_days=2)
    apply_retention(acme)
    with tenant_scope(acme.tenant.id):
        lines = RejectedEvent.objects.for_tenant(acme.tenant.id).order_by("id")
        assert [bytes(each.raw) for each in lines] == [b"of case-7"] * 6 + [b""]


@pytest.mark.slow
def test_held_index_rows_are_kept_with_the_figures_of_their_day(acme: Cast, long_ago: date) -> None:
    send_violating_calls(acme, long_ago)
    at = datetime(long_ago.year, long_ago.month, long_ago.day, 12, tzinfo=UTC)
    violation = {"path": "$.a", "code": "WRONG_TYPE", "received": "string"}
    guard = {"strategy": "throw", "outcome": "failed", "violations": [violation]}
    send_events(acme.tenant, make_call(started_at=at, guard=guard, **CALLS[0]))
    one = set_hold(acme, case_id="case-7")
    set_retention(acme, index_days=40)
    apply_retention(acme)
    INDEX_DAYS.refresh()
    with tenant_scope(acme.tenant.id):
        (call,) = Invocation.objects.for_tenant(acme.tenant.id)
        (broken,) = Violation.objects.for_tenant(acme.tenant.id)
        (trace,) = Trace.objects.for_tenant(acme.tenant.id)
    assert (call.case_id, broken.invocation_id) == ("case-7", call.invocation_id)
    assert trace.trace_id == "trace-held"
    assert rows_until(acme, long_ago)["rollup"] > 0
    assert recorded_actions(acme, "retention.index") == []
    assert not {each.table for each in retention.drop_empty_days()} & {"invocation", "violation"}
    apply_retention(acme)
    assert index_agrees_with_log(acme)
    release(acme, one)
    apply_retention(acme)
    assert set(rows_until(acme, long_ago).values()) == {0}
    (action,) = recorded_actions(acme, "retention.index")
    assert action["calls"] == 4


def test_setting_and_releasing_a_hold_are_logged(acme: Cast) -> None:
    one = set_hold(acme, trace_id="trace-held")
    release(acme, one)
    (was_set,) = recorded_actions(acme, "hold.set")
    assert was_set["covers"] == {"trace_id": "trace-held"}
    assert [each["reason"] for each in recorded_actions(acme, "hold.release")] == ["settled"]
    with tenant_scope(acme.tenant.id):
        own = Batch.objects.for_tenant(acme.tenant.id).filter(is_own=True).order_by("first_index")
        places = [(batch.batch_id, 0) for batch in own]
        raws = [event.raw or b"" for event in read_events(acme.tenant.id, places).values()]
    assert sorted(b'"state":"released"' in raw for raw in raws if b'"hold"' in raw) == [False, True]
    assert all(str(one.id).encode() in raw for raw in raws if b'"type":"hold"' in raw)
    page = signed_in(acme.auditor).get(reverse("hold_list")).content.decode()
    assert "settled" in page
    assert "Release…" not in page
    again = signed_in(acme.admin).post(
        reverse("hold_release", args=[one.id]), {"reason": "x"}, follow=True
    )
    assert "already released" in again.content.decode()


def test_hold_without_a_valid_scope_is_rejected(acme: Cast) -> None:
    client = signed_in(acme.auditor)
    for covers in ({}, {"since": "2026-11-02T00:00", "until": "2026-11-01T00:00"}):
        data = {"name": "n", "reason": "r", **covers}
        assert client.post(reverse("hold_list"), data).status_code == 200
    with tenant_scope(acme.tenant.id):
        assert not LegalHold.objects.for_tenant(acme.tenant.id).exists()


def test_end_with_an_offset_that_postgresql_refuses_is_in_utc(acme: Cast) -> None:
    key = create_key(acme.tenant, "program", [Scope.HOLDS])[1]
    body = {"name": "n", "reason": "r", "until": "2126-07-20T03:50:28-23:03"}
    answer = Client(headers={"Authorization": f"Bearer {key}"}).post(
        "/api/v1/holds", body, content_type="application/json"
    )
    assert (answer.status_code, answer.json()["until"]) == (201, "2126-07-21T02:53:28Z")


def test_release_requires_a_reason(acme: Cast) -> None:
    one = set_hold(acme, trace_id="t")
    address = reverse("hold_release", args=[one.id])
    answer = signed_in(acme.admin).post(address, {"reason": " "}, follow=True)
    assert "Hold not released" in answer.content.decode()


@pytest.mark.parametrize("role", ["viewer", "editor"])
def test_viewers_and_editors_cannot_manage_holds(acme: Cast, role: str) -> None:
    client: Client = signed_in(getattr(acme, role))
    one = set_hold(acme, trace_id="t")
    assert client.get(reverse("hold_list")).status_code == 403
    assert client.post(reverse("hold_release", args=[one.id])).status_code == 403


def test_held_call_names_its_hold(acme: Cast) -> None:
    (start, _) = send_old_calls(acme, DAY)
    set_hold(acme, tool_name="get_weather", since="2020-01-01T00:00")
    day = datetime.fromisoformat(start["started_at"]).astimezone(UTC).date()
    page = signed_in(acme.viewer).get(f"/calls/{day}/{start['invocation_id']}").content.decode()
    assert "Under the legal hold" in page


def test_call_shows_when_and_why_its_payload_was_erased(acme: Cast) -> None:
    (start, _) = send_old_calls(acme, 9 * DAY)
    set_retention(acme, payload_days=5)
    apply_retention(acme)
    day = datetime.fromisoformat(start["started_at"]).astimezone(UTC).date()
    page = signed_in(acme.viewer).get(f"/calls/{day}/{start['invocation_id']}").content.decode()
    assert "were erased by retention" in page
    assert "Backups keep them until they expire" in page
    entry = signed_in(acme.viewer).get(reverse("ledger_entry", args=[0])).content.decode()
    assert "The payload was erased on" in entry


def test_hold_works_without_retention_settings(acme: Cast) -> None:
    post(make_ingest_key(acme.tenant), b"{ broken\n")
    set_hold(acme, case_id="c")
    assert tenant_setting(acme).payload_days is None
