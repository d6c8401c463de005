"""Spans that became no call are counted by name and reason, in a limited number of rows."""

from collections import Counter
from datetime import timedelta
from unittest.mock import patch

import pytest
from django.utils import timezone

from audit.intake.otlp import skipped
from audit.intake.otlp.skipped import KINDS_MAX, OTHERS, fitted
from audit.queries.skipped_spans import KEPT_FOR, Reason, SkippedKind, skipped_spans, skipped_totals
from audit.tasks import tenants as tasks
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_ingest_key
from tests.support.otlp_requests import JSON, post, request, span

TOOL_LIKE = {"acme.tool.name": "get_weather"}


@pytest.fixture
def key(acme: Cast) -> str:
    return make_ingest_key(acme.tenant)


def counts(cast: Cast) -> dict[tuple[str, ...], int]:
    with tenant_scope(cast.tenant.id):
        return {tuple(one.kind): one.count for one in skipped_spans()}


def test_skipped_spans_are_counted_by_name_and_reason(acme: Cast, key: str) -> None:
    body = request(
        span(),
        span("run_tool", attributes=TOOL_LIKE),
        span("GET", attributes={"http.method": "GET"}),
        span("broken", traceId="0" * 32),
        **{"service.name": "shop"},
    )
    for _ in range(2):
        assert post(key, body, JSON).status_code == 200

    assert counts(acme) == {
        ("unmarked", "shop", "my-agent", "run_tool"): 2,
        ("no_call", "shop", "my-agent", "GET"): 2,
        ("without a valid trace id and span id", "", "", ""): 2,
    }
    with tenant_scope(acme.tenant.id):
        assert [one.reason for one in skipped_spans()] == [
            Reason.UNMARKED,
            Reason.REJECTED,
            Reason.NO_CALL,
        ]
        totals = skipped_totals()
    assert (totals.spans, totals.unmarked) == (6, 2)


def test_span_of_a_day_without_index_is_counted_as_rejected(acme: Cast, key: str) -> None:
    started = str(int((timezone.now() - timedelta(days=60)).timestamp() * 1e9))
    answer = post(key, request(span(startTimeUnixNano=started, endTimeUnixNano=started)), JSON)

    assert answer.rejected == 1
    ((kind, count),) = counts(acme).items()
    assert (Reason.of(kind[0]), count) == (Reason.REJECTED, 1)


def test_log_record_that_is_no_call_is_counted(acme: Cast, key: str) -> None:
    record = b"""{"resourceLogs": [{"scopeLogs": [{"scope": {"name": "agent"}, "logRecords": [
        {"timeUnixNano": "1700000000000000000", "eventName": "user_prompt"}]}]}]}"""
    assert post(key, record, JSON, path="/v1/logs").status_code == 200

    assert counts(acme) == {("no_call", "", "agent", "user_prompt"): 1}


def test_changing_names_do_not_fill_the_table(
    acme: Cast, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skipped, "KINDS_MAX", 3)
    for first in (0, 5):
        names = [f"GET /users/{number}\x00" for number in range(first, first + 5)]
        assert (
            post(key, request(*(span(name, attributes={}) for name in names)), JSON).rejected == 0
        )
    post(key, request(span("run_tool" * 100, attributes=TOOL_LIKE)), JSON)

    counted = counts(acme)
    assert len(counted) == 5
    assert counted["no_call", "", "", OTHERS] == 7
    assert counted["unmarked", "", "my-agent", ("run_tool" * 100)[:120]] == 1


def test_known_kinds_keep_their_row_when_no_place_is_left() -> None:
    known = {SkippedKind("no_call", "", "", str(number)) for number in range(KINDS_MAX)}
    counted = fitted(
        Counter({SkippedKind("no_call", "", "", "7"): 2, SkippedKind("no_call", "", "", "new"): 5}),
        known,
    )

    assert counted == {
        SkippedKind("no_call", "", "", "7"): 2,
        SkippedKind("no_call", "", "", OTHERS): 5,
    }


@pytest.mark.slow
def test_kinds_that_no_longer_arrive_are_removed(
    acme: Cast, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    post(key, request(span("GET", attributes={})), JSON)
    monkeypatch.setattr(tasks, "_tenant_ids", lambda: [acme.tenant.id])  # the others take 20 s
    monkeypatch.setattr(tasks, "_expire_soon", lambda tenant_id: None)
    now = timezone.now()
    for later, left in ((KEPT_FOR - timedelta(hours=1), 1), (KEPT_FOR + timedelta(hours=1), 0)):
        with patch("audit.tasks.tenants.timezone.now", return_value=now + later):
            tasks.keep_to_retention(0)
        assert len(counts(acme)) == left
