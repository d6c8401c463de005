"""Starts are inserted as new calls. If a call is stored already, a second attempt updates it."""

from typing import Any

import pytest
from django.db import connection

from audit.intake import ingest
from audit.models import Invocation
from audit.sql.run import Statements
from tenants.scope import tenant_scope
from tests.support.event_requests import lines, post
from tests.support.factories import Cast, make_call, make_ingest_key
from tests.support.recount import assert_consistent


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the statements that wrote rows of calls, in order."""
    ran: list[str] = []
    execute = Statements._execute

    def watched(self: Statements, name: str, parameters: dict[str, Any]) -> Any:
        if name.endswith("_invocations"):
            ran.append(name)
        return execute(self, name, parameters)

    monkeypatch.setattr(Statements, "_execute", watched)
    return ran


def accepted(key: str, *events: dict[str, Any]) -> tuple[int, int]:
    """Send events in one request; return how many were new and how many duplicates."""
    answer = post(key, lines(events))
    assert answer.status_code == 200, answer.content
    assert answer.json()["rejected"] == []
    return answer.json()["accepted"], answer.json()["duplicates"]


def states(cast: Cast) -> dict[str, str]:
    with tenant_scope(cast.tenant.id):
        calls = Invocation.objects.for_tenant(cast.tenant.id)
        return {str(call.invocation_id): call.state for call in calls}


@pytest.mark.one_node
def test_new_calls_are_inserted_and_later_ends_update_those_rows(
    acme: Cast, written: list[str]
) -> None:
    key = make_ingest_key(acme.tenant)
    first, second, third = make_call(), make_call(), make_call()
    assert accepted(key, first[0], *second) == (3, 0)
    assert written == ["insert_invocations"]
    written.clear()
    assert accepted(key, first[1], *third) == (3, 0)
    assert written == ["upsert_invocations", "insert_invocations"]
    assert set(states(acme).values()) == {"ok"}
    assert_consistent(acme.tenant)


def test_end_before_its_start_is_upserted_together_with_the_new_calls(
    acme: Cast, written: list[str]
) -> None:
    """Otherwise two requests with halves of each other's calls would deadlock."""
    key = make_ingest_key(acme.tenant)
    first, second = make_call(), make_call()
    assert accepted(key, first[1], second[0]) == (2, 0)
    assert written == ["upsert_invocations"]
    assert_consistent(acme.tenant)


@pytest.mark.slow
@pytest.mark.one_node
def test_late_starts_are_written_at_the_second_attempt_and_then_expected(
    acme: Cast, written: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    key = make_ingest_key(acme.tenant)
    calls = [make_call() for _ in range(3)]
    accepted(key, *(end for _, end in calls))
    written.clear()
    assert accepted(key, calls[0][0], *make_call()) == (3, 0)
    assert written == ["insert_invocations", "upsert_invocations"]
    written.clear()
    assert accepted(key, calls[1][0], *make_call()) == (3, 0)
    assert written == ["upsert_invocations"], "by now late starts are expected"
    written.clear()
    monkeypatch.setattr(ingest, "_CAREFUL_S", 0.0)
    ingest._EXPECTATION.take_back()
    assert accepted(key, calls[2][0], *make_call()) == (3, 0)
    assert written == ["insert_invocations", "upsert_invocations"], (
        "after a while the quick way is tried again"
    )
    assert set(states(acme).values()) == {"ok"}
    assert_consistent(acme.tenant)


@pytest.mark.one_node
def test_resent_call_is_a_duplicate_on_either_path(acme: Cast, written: list[str]) -> None:
    key = make_ingest_key(acme.tenant)
    call = make_call()
    assert accepted(key, *call) == (2, 0)
    assert accepted(key, *call, *make_call()) == (2, 2)
    assert written == ["insert_invocations"] * 2 + ["upsert_invocations"]
    assert len(states(acme)) == 2
    assert_consistent(acme.tenant)


@pytest.mark.slow
def test_second_attempt_uses_the_same_connection(
    acme: Cast, caplog: pytest.LogCaptureFixture
) -> None:
    """In a large request several commands are in the pipeline when the first one fails."""
    key = make_ingest_key(acme.tenant)
    call = make_call()
    accepted(key, call[1])
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        before = cursor.fetchall()
    many = [event for _ in range(250) for event in make_call(args={"text": "x" * 800})]
    assert accepted(key, *many[:300], call[0], *many[300:]) == (501, 0)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        assert cursor.fetchall() == before
    assert "psycopg" not in {record.name for record in caplog.records}
    assert_consistent(acme.tenant)
