"""What decisions quote is kept, held, found and erased as what starts quote."""

import json
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, connections

from audit.models import PayloadHit, RejectedEvent
from audit.work.payload_search import run_slice as run_search
from tenants.scope import tenant_scope
from tests.support.erasures import erase
from tests.support.factories import Cast, make_call, make_decision, send_events
from tests.support.legal_holds import event_texts, missing_in_ledger, set_hold
from tests.support.pages import signed_in
from tests.support.retention import DAY, apply_retention, index_agrees_with_log, set_retention

SECRET = "Ada Lovelace"
NOW = datetime.now(UTC)


def denied_after_a_request(**members: Any) -> list[dict[str, Any]]:
    """A request with the secret in its arguments, and its answer, which does not repeat them."""
    pk = str(uuid.uuid4())
    request = make_decision(
        "awaiting",
        invocation_id=pk,
        decided_at=NOW - timedelta(minutes=9),
        args={"who": SECRET},
        **members,
    )
    answer = make_decision(
        "denied", invocation_id=pk, decided_at=NOW - timedelta(minutes=2), **members
    )
    del answer["args"]
    return [request, answer]


def age(cast: Cast, days: int) -> None:
    with connections["owner"].cursor() as cursor:
        cursor.execute(
            "UPDATE batch SET received_at = %s WHERE tenant_id = %s",
            [NOW - days * DAY, cast.tenant.id],
        )


def stored_reasons(cast: Cast) -> list[str | None]:
    with tenant_scope(cast.tenant.id), connection.cursor() as cursor:
        cursor.execute(
            "SELECT reason FROM decision WHERE tenant_id = %s ORDER BY trace_id", [cast.tenant.id]
        )
        return [reason for (reason,) in cursor.fetchall()]


def test_arguments_of_a_request_are_those_of_the_refused_call(acme: Cast) -> None:
    request, _ = events = denied_after_a_request()
    send_events(acme.tenant, events)
    address = f"/calls/{NOW.date()}/{request['invocation_id']}"
    client = signed_in(acme.editor)
    assert SECRET in client.get(address).content.decode()
    assert json.loads(client.get(f"{address}/start").content)["args"] == {"who": SECRET}


@pytest.mark.slow
def test_payload_search_finds_calls_that_did_not_run_until_they_are_erased(acme: Cast) -> None:
    refused = make_decision(case_id="mine", args={"who": SECRET}, reason=SECRET)
    other = make_decision(case_id="other", args={"who": SECRET})
    send_events(acme.tenant, [refused, other, *make_call(args={"who": SECRET})])
    client = signed_in(acme.editor)
    answer = client.post("/calls/search", {"text": SECRET})
    assert not run_search(acme.tenant.id, UUID(answer["Location"].rpartition("/")[2]))
    page = client.get(answer["Location"]).content.decode()
    assert page.count("<mark>") == 3
    assert str(refused["invocation_id"]) in page
    erase(acme)
    page = client.get(answer["Location"]).content.decode()
    assert page.count("<mark>") == 2
    assert str(refused["invocation_id"]) not in page
    with tenant_scope(acme.tenant.id):
        assert PayloadHit.objects.for_tenant(acme.tenant.id).count() == 2


@pytest.mark.slow
def test_erasure_reaches_a_conflicting_decision_in_the_inbox(acme: Cast) -> None:
    event = make_decision(case_id="mine", args={"who": SECRET})
    send_events(acme.tenant, [event])
    send_events(acme.tenant, [event | {"reason": SECRET}])
    done = erase(acme)
    assert (done.erased_calls, done.erased_events, done.erased_lines) == (1, 2, 1)
    with tenant_scope(acme.tenant.id):
        (line,) = RejectedEvent.objects.for_tenant(acme.tenant.id)
    assert bytes(line.raw) == b""
    assert not any(event_texts(acme))
    assert missing_in_ledger(acme) == []
    assert index_agrees_with_log(acme)


@pytest.mark.slow
@pytest.mark.parametrize(
    "covers",
    [
        {"trace_id": "held"},
        {"case_id": "case-7"},
        {"tool_name": "refund"},
        {"since": (NOW - timedelta(days=9, minutes=1)).isoformat(timespec="minutes")[:16]},
    ],
)
def test_holds_of_every_kind_keep_decisions(acme: Cast, covers: dict[str, str]) -> None:
    place = {"trace_id": "held", "case_id": "case-7", "tool_name": "refund"}
    held = make_decision(decided_at=NOW - 9 * DAY, reason="held", **place)
    free = make_decision(decided_at=NOW - 12 * DAY, reason="free", trace_id="free")
    send_events(acme.tenant, [free, held])
    age(acme, 9)
    set_hold(acme, **covers)
    set_retention(acme, payload_days=5, index_days=7)
    apply_retention(acme)
    assert [bool(text) for text in event_texts(acme)] == [False, True]
    assert stored_reasons(acme) == ["held"], "the index keeps its row, too"
    done = erase(acme, "state:refused")
    assert (done.erased_calls, done.held_count) == (0, 1)
    assert SECRET not in str(event_texts(acme))
    assert missing_in_ledger(acme) == []
