"""Events of the ADK's `Tool` are accepted unchanged, without members of Tooltrail.

Members, order and values are as recorded (`sdk/tests/conformance`). The recording has no times;
they are added here as JavaScript writes them.
"""

import json
import uuid
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from django.urls import reverse
from tooltrail.tools.canonical import compute_call_id

from audit.log.payload import read_events
from audit.models import Invocation
from tenants.scope import tenant_scope
from tests.support.event_requests import post
from tests.support.factories import Cast, make_ingest_key
from tests.support.pages import signed_in, text
from tests.support.recorded_executions import ROWS, emitted, javascript
from tests.support.recount import assert_consistent

EMITTING = [row for row in ROWS if row["events"]]
ONCE = [row for row in EMITTING if len(row["events"]) <= 3]
NOW = datetime.now(UTC).replace(microsecond=123_000)


def luxon(instant: datetime) -> str:
    """An instant as a date library writes it that keeps the local offset."""
    return instant.astimezone(timezone(timedelta(hours=2))).isoformat(timespec="milliseconds")


def send(cast: Cast, lines: list[bytes]) -> dict[str, Any]:
    answer = post(make_ingest_key(cast.tenant), b"\n".join(lines))
    assert answer.status_code == 200
    document: dict[str, Any] = answer.json()
    return document


def calls(cast: Cast) -> list[Invocation]:
    with tenant_scope(cast.tenant.id):
        rows = Invocation.objects.for_tenant(cast.tenant.id)
        return list(rows.order_by("started_at", "state", "invocation_id"))


def test_recording_contains_the_required_cases() -> None:
    assert len(ONCE) >= 8
    assert len(EMITTING) > len(ONCE)
    ends = [event["isError"] for row in ONCE for event in row["events"] if "isError" in event]
    assert {True, False} == set(ends)


@pytest.mark.slow
@pytest.mark.generated(4)
@pytest.mark.parametrize("write", [javascript, luxon])
@pytest.mark.parametrize("row", ONCE, ids=lambda row: row["id"])
def test_recorded_execution_is_one_call(acme: Cast, row: dict[str, Any], write: Any) -> None:
    lines = emitted(row, NOW, write)
    answer = send(acme, lines)
    assert (answer["accepted"], answer["rejected"]) == (len(lines), [])
    (call,) = calls(acme)
    start = row["events"][0]
    assert (call.tool_name, call.call_id) == (start["toolName"], start["callId"])
    assert call.trace_id == call.turn_id == start["turnId"]
    assert call.started_at == NOW
    if len(lines) == 1:
        assert call.state == "open"
    else:
        assert call.state == ("failed" if row["events"][-1]["isError"] else "ok")
        assert call.duration_us == 12_138
    with tenant_scope(acme.tenant.id):
        places = [(uuid.UUID(answer["batch_id"]), place) for place in range(len(lines))]
        stored = read_events(acme.tenant.id, places)
    assert [stored[place].raw for place in places] == lines
    assert_consistent(acme.tenant)


def test_all_recorded_executions_in_one_batch_are_accepted(acme: Cast) -> None:
    lines = [
        line for n, row in enumerate(ONCE) for line in emitted(row, NOW + timedelta(milliseconds=n))
    ]
    assert send(acme, lines)["accepted"] == len(lines)
    assert len(calls(acme)) == len(ONCE)
    assert_consistent(acme.tenant)


def test_second_end_event_does_not_change_the_call(acme: Cast) -> None:
    """If a listener raises at the first end, the ADK emits a second one, which says failed."""
    (row,) = (row for row in EMITTING if row not in ONCE)
    start, first, second = emitted(row, NOW)
    for line in (start, first, second):
        send(acme, [line])
    (call,) = calls(acme)
    assert call.state == "ok"
    assert_consistent(acme.tenant)


def pair(turn_id: str, query: str = "x", *, is_error: bool = False) -> list[bytes]:
    """Start and end of a search."""
    shared = {
        "toolName": "search",
        "turnId": turn_id,
        "callId": compute_call_id("search", {"query": query}),
    }
    times = {"endedAt": javascript(NOW), "durationMs": 0, "isError": is_error}
    started = {"startedAt": javascript(NOW)}
    start = {"type": "toolExecutionStart", **shared, "args": {"query": query}, **started}
    end = {"type": "toolExecutionEnd", **shared, **started, **times}
    return [json.dumps(event, separators=(",", ":")).encode() for event in (start, end)]


@pytest.mark.slow
def test_identical_parallel_calls_in_one_millisecond_are_two_calls(acme: Cast) -> None:
    start, ok = pair("turn-1")
    again, failed = pair("turn-1", is_error=True)
    assert start == again, "the two starts are identical"
    assert send(acme, [start, again, ok, failed])["accepted"] == 4
    stored = calls(acme)
    assert [call.state for call in stored] == ["failed", "ok"]
    assert len({call.call_id for call in stored}) == 1
    assert_consistent(acme.tenant)

    page = signed_in(acme.editor).get(reverse("trace_detail", args=["turn-1"]))
    shown = page.content.decode()
    for call in stored:
        assert shown.count(f'id="c-{call.invocation_id}"') == 1
    rows = shown.split('<ol class="calls"')[1].split("</ol>")[0]
    assert rows.count("<li") == 2
    assert "1 identical call " in text(shown)


@pytest.mark.parametrize("requests", ["SSEE", "SESE", "EESS", "ESSE", "SS|EE", "EE|SS"])
def test_identical_calls_stay_two_in_any_event_order(acme: Cast, requests: str) -> None:
    """Equal events must be in one request: there they are counted."""
    start, end = pair("turn-1")
    for request in requests.split("|"):
        send(acme, [{"S": start, "E": end}[letter] for letter in request])
    assert [call.state for call in calls(acme)] == ["ok", "ok"]
    assert_consistent(acme.tenant)


def test_start_and_end_are_paired_across_requests(acme: Cast) -> None:
    pairs = [pair("turn-1"), pair("turn-1"), pair("turn-2")]
    send(acme, [start for start, _ in pairs])
    send(acme, [end for _, end in pairs])
    assert [call.state for call in calls(acme)] == ["ok"] * 3
    assert_consistent(acme.tenant)


def test_events_resent_with_another_batch_id_are_duplicates(acme: Cast) -> None:
    lines = [*pair("turn-1"), *pair("turn-1")]
    assert send(acme, lines)["accepted"] == 4
    again = send(acme, lines)
    assert (again["accepted"], again["duplicates"]) == (0, 4)
    assert len(calls(acme)) == 2
    assert_consistent(acme.tenant)
