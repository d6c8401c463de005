"""`GET /api/v1/stream`: records for whoever keeps the cursor."""

from typing import Any
from urllib.parse import urlencode

import pytest

from audit.ledger.actions import enter_all_actions
from tenants.models import Scope
from tests.support.api_client import Program, program
from tests.support.factories import Cast, make_call, send_events
from tests.support.ledger_log import sign
from tests.support.streams import assert_valid, keys_of, verdict_of


@pytest.fixture
def reader(acme: Cast) -> Program:
    return program(acme.tenant, Scope.READ)


def pull(reader: Program, **params: Any) -> Any:
    return reader.get(f"stream?{urlencode(params)}")


@pytest.mark.slow
def test_pages_have_every_record_once_and_in_order(acme: Cast, reader: Program) -> None:
    for _ in range(3):
        send_events(acme.tenant, [event for _ in range(60) for event in make_call()])
    sign(acme.tenant)
    keys, after, seen = keys_of(acme), -1, []
    while True:
        page = pull(reader, after=after, limit=37)
        for one in page["records"]:
            assert_valid("ocsf", one)
            assert verdict_of(one, keys).is_genuine
        seen += [one["tooltrail"]["index"] for one in page["records"]]
        assert page["after"] >= after
        after = page["after"]
        if not page["has_more"]:
            break
    assert len(seen) == 360
    assert seen == sorted(set(seen))
    assert after == page["signed"] - 1
    again = pull(reader, after=after)
    assert again["records"] == [] and again["after"] == after


def test_actions_and_calls_are_apart(acme: Cast, reader: Program) -> None:
    send_events(acme.tenant, make_call())
    keys_of(acme)  # an action
    enter_all_actions(acme.tenant.id)
    sign(acme.tenant)
    calls, actions = pull(reader), pull(reader, of="actions", format="ecs")
    assert {one["tooltrail"]["kind"] for one in calls["records"]} == {"start", "end"}
    kinds = {one["tooltrail"]["kind"] for one in actions["records"]}
    assert "action" in kinds and not kinds & {"start", "end"}
    assert calls["after"] == actions["after"] == calls["signed"] - 1


def test_only_signed_entries_are_given_out(acme: Cast, reader: Program) -> None:
    send_events(acme.tenant, make_call())
    assert pull(reader)["records"] == []
    sign(acme.tenant)
    assert len(pull(reader)["records"]) == 2
    send_events(acme.tenant, make_call())  # it waits for the next checkpoint
    assert len(pull(reader)["records"]) == 2


def test_a_key_needs_the_scope(acme: Cast) -> None:
    stranger = program(acme.tenant, Scope.INGEST)
    assert stranger.refused("stream", method="GET")[0] == 403


@pytest.mark.parametrize("query", ["after=-2", "after=x", "limit=0", "limit=9999", "of=all", "x=1"])
def test_bad_parameters_are_named(reader: Program, query: str) -> None:
    status, code = reader.refused(f"stream?{query}", method="GET")
    assert (status, code) in ((422, "parameter"), (422, "limit"), (400, "parameter"))
