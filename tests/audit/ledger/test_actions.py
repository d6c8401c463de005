"""Actions of users in the ledger: entered once, and verified against it."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import uuid_utils.compat
from django.db import connections
from tooltrail.ledger import Kind

from audit.ledger import actions, checks
from audit.ledger.actions import enter_actions
from audit.ledger.entry_view import entry_at
from audit.models import Batch, LedgerCheck
from tenants.actions import record_action
from tenants.models import Action
from tenants.scope import tenant_scope
from tenants.slices import JobState
from tests.support.factories import Cast, make_call, send_events
from tests.support.ledger_log import (
    as_owner,
    keep,
    own_folder,
    status_of,
)
from tests.support.pages import signed_in


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The signer's folder of this test's worker."""
    yield own_folder(tmp_path, monkeypatch)


def record_actions(cast: Cast, count: int = 1, **details: Any) -> None:
    """Record that many actions of the admin."""
    with tenant_scope(cast.tenant.id):
        for number in range(count):
            record_action(cast.tenant, cast.admin, "key.create", f"key {number}", **details)


def enter_and_sign(cast: Cast) -> None:
    """Enter all actions into the ledger and sign, as the worker does."""
    now = datetime.now(UTC)
    while enter_actions(cast.tenant.id, now):
        pass
    keep(cast.tenant, now)


def recorded_actions(cast: Cast) -> list[Action]:
    with tenant_scope(cast.tenant.id):
        return list(Action.objects.filter(tenant=cast.tenant).order_by("at", "id"))


def read(cast: Cast) -> LedgerCheck:
    """Check the whole ledger; return the completed check."""
    with tenant_scope(cast.tenant.id):
        check = checks.start_check("auditor", datetime.now(UTC))
    assert check is not None
    while checks.run_slice(cast.tenant.id, check.id):
        pass
    with tenant_scope(cast.tenant.id):
        return LedgerCheck.objects.for_tenant(cast.tenant.id).get(id=check.id)


def test_action_becomes_a_ledger_entry(acme: Cast) -> None:
    record_actions(acme, scopes=["read"], name="Zoë \u2028")
    enter_and_sign(acme)
    (action,) = recorded_actions(acme)
    with tenant_scope(acme.tenant.id):
        view = entry_at(0)
    assert action.ledger_index == 0
    assert view is not None
    assert view.entry is not None
    assert (view.entry.kind, view.entry.event_id, view.fault) == (Kind.ACTION, action.id, "")
    assert json.loads(view.raw) == {
        "type": "action",
        "event_id": str(action.id),
        "at": action.at.isoformat(),
        "actor": acme.admin.username,
        "actor_id": acme.admin.pk,
        "verb": "key.create",
        "subject": "key 0",
        "details": {"scopes": ["read"], "name": "Zoë \u2028"},
    }


def test_entry_shows_its_action_only_to_roles_that_may_see_actions(acme: Cast) -> None:
    record_actions(acme)
    enter_and_sign(acme)
    page = signed_in(acme.auditor).get("/ledger/entries/0").content.decode()
    for expected in (acme.admin.username, "key.create", "key 0"):
        assert expected in page
    page = signed_in(acme.viewer).get("/ledger/entries/0").content.decode()
    assert "Entry" in page
    assert "key.create" not in page


def test_actions_are_entered_once_in_order_among_events(acme: Cast) -> None:
    record_actions(acme, 3)
    enter_and_sign(acme)
    send_events(acme.tenant, make_call())
    record_actions(acme, 2)
    for _ in range(3):
        enter_and_sign(acme)
    assert [one.ledger_index for one in recorded_actions(acme)] == [0, 1, 2, 5, 6]
    assert (status_of(acme.tenant).size, status_of(acme.tenant).signed_size) == (7, 3)


def test_many_actions_are_entered_in_batches(acme: Cast) -> None:
    record_actions(acme, 5)
    now = datetime.now(UTC)
    assert [enter_actions(acme.tenant.id, now, batch=2) for _ in range(4)] == [2, 2, 1, 0]
    assert [one.ledger_index for one in recorded_actions(acme)] == [0, 1, 2, 3, 4]


def test_concurrent_workers_enter_each_action_once(acme: Cast) -> None:
    record_actions(acme, 40)

    def worker(_: int) -> int:
        entered = 0
        try:
            while more := enter_actions(acme.tenant.id, datetime.now(UTC), batch=3):
                entered += more
        finally:
            connections.close_all()
        return entered

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(worker, range(4))) == 40
    indexes = [one.ledger_index for one in recorded_actions(acme)]
    assert sorted(index for index in indexes if index is not None) == list(range(40))
    enter_and_sign(acme)
    assert read(acme).findings == []


@pytest.mark.parametrize("step", ["append_batch", "run"])
@pytest.mark.parametrize("is_done", [False, True])
def test_worker_killed_at_any_step_enters_nothing_partially(
    acme: Cast, monkeypatch: pytest.MonkeyPatch, step: str, is_done: bool
) -> None:
    class Killed(BaseException):
        pass

    record_actions(acme, 3)
    does = getattr(actions, step)

    def killed(*arguments: Any, **named: Any) -> None:
        if is_done:
            does(*arguments, **named)
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(actions, step, killed)
        with pytest.raises(Killed):
            enter_actions(acme.tenant.id, datetime.now(UTC))
    assert [one.ledger_index for one in recorded_actions(acme)] == [None, None, None]
    assert status_of(acme.tenant).size == 0
    enter_and_sign(acme)
    assert [one.ledger_index for one in recorded_actions(acme)] == [0, 1, 2]
    with tenant_scope(acme.tenant.id):
        assert Batch.objects.for_tenant(acme.tenant.id).count() == 1


def test_actions_of_another_tenant_are_not_entered(acme: Cast, globex: Cast) -> None:
    record_actions(acme)
    enter_and_sign(globex)
    assert [one.ledger_index for one in recorded_actions(acme)] == [None]


def test_check_passes_for_unaltered_actions(acme: Cast) -> None:
    record_actions(acme, 3, tries=2, share=0.1, none=None)
    enter_and_sign(acme)
    send_events(acme.tenant, make_call())
    enter_and_sign(acme)
    record_actions(acme, 2)
    check = read(acme)
    assert (check.state, check.findings) == (JobState.PASSED, []), (
        "actions not entered yet are no finding"
    )


CHANGED = "entry 1: its action was changed in the audit log"


@pytest.mark.slow
@pytest.mark.one_node
@pytest.mark.parametrize(
    ("tampering", "finding"),
    [
        ("UPDATE action SET user_name = 'somebody else'", CHANGED),
        ("UPDATE action SET user_id = NULL", CHANGED),
        ("UPDATE action SET verb = 'key.revoke'", CHANGED),
        ("UPDATE action SET subject = 'another'", CHANGED),
        ("UPDATE action SET details = '{}'", CHANGED),
        ("UPDATE action SET at = at - interval '1 second'", CHANGED),
        ("UPDATE action SET id = gen_random_uuid()", CHANGED),
        ("DELETE FROM action", "entry 1: its action was deleted from the audit log"),
        (
            "UPDATE action SET ledger_index = NULL",
            "entry 1: its action was deleted from the audit log",
        ),
        (
            "UPDATE action SET ledger_index = 3",
            "entry 3: an action that was inserted claims this entry",
        ),
        (
            "UPDATE action SET ledger_index = 4711",
            "an action that was inserted claims entry 4,711, which does not exist",
        ),
    ],
)
def test_altered_action_is_detected(acme: Cast, tampering: str, finding: str) -> None:
    record_actions(acme, 3, scopes=["read"])
    enter_and_sign(acme)
    send_events(acme.tenant, make_call())
    enter_and_sign(acme)
    statement = f"{tampering} WHERE tenant_id = %s AND ledger_index = 1"
    assert as_owner(statement, [acme.tenant.id]) == 1
    check = read(acme)
    assert check.state == JobState.FAILED
    assert finding in check.findings


@pytest.mark.parametrize("ledger_index", [None, 0, 2, 9])
def test_inserted_action_is_detected(acme: Cast, ledger_index: int | None) -> None:
    """Also if the worker enters it (index None): it is entered too late for its time."""
    record_actions(acme, 1)
    enter_and_sign(acme)
    send_events(acme.tenant, make_call())
    enter_and_sign(acme)
    if ledger_index == 0:
        as_owner("DELETE FROM action WHERE tenant_id = %s", [acme.tenant.id])
    as_owner(
        "INSERT INTO action (tenant_id, id, at, user_id, user_name, verb, subject, details,"
        " ledger_index) VALUES (%s, %s, %s, NULL, 'mallory', 'session.start', 'acme', '{}', %s)",
        [
            acme.tenant.id,
            uuid_utils.compat.uuid7(),
            datetime.now(UTC) - timedelta(hours=1),
            ledger_index,
        ],
    )
    enter_and_sign(acme)
    check = read(acme)
    assert check.state == JobState.FAILED, "the inserted action was not detected"
