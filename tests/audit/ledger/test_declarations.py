"""Entries that declare payloads erased, against what justifies them."""

from datetime import timedelta
from unittest.mock import patch
from uuid import UUID

import pytest
from django.utils import timezone
from tooltrail.ledger import Kind

from audit.ledger.actions import enter_actions
from audit.ledger.baseline import enter_baseline
from audit.ledger.declarations import unjustified
from audit.ledger.entries import append_entry
from audit.models import ErasureState
from audit.retention import retention
from audit.retention.event_removal import declare
from audit.retention.proved_holds import HoldsAlteredError
from audit.tasks.requested import erase_calls
from audit.tasks.tenants import expire
from config.postgresql.aliases import KEEPER
from tenants.scope import tenant_scope
from tests.support.erasures import confirm_erasure, preview_erasure, read_erasure, run_erasure
from tests.support.factories import Cast, make_call, make_decision, send_events
from tests.support.ledger_log import as_owner
from tests.support.legal_holds import event_texts, set_hold
from tests.support.pages import signed_in

NEVER = UUID(int=1)


def begin(cast: Cast) -> None:
    assert enter_baseline(cast.tenant.id, timezone.now())


def faults(cast: Cast) -> list[str]:
    with tenant_scope(cast.tenant.id):
        return list(unjustified(cast.tenant.id))


def set_payload_days(cast: Cast, days: int) -> None:
    page = {"name": cast.tenant.name, "time_zone": "", "payload_days": days, "is_sure": "on"}
    assert signed_in(cast.admin).post("/settings/tenant", page).status_code == 302


def declare_by_sql(
    cast: Cast, kind: Kind, end: int, *, erasure: UUID | None = None, days: int = 0
) -> int:
    """What an attacker does who may write to the database."""
    with tenant_scope(cast.tenant.id, using=KEEPER):
        index = declare(
            cast.tenant.id,
            kind,
            [(0, end)],
            "GDPR",
            "ada",
            timezone.now() + timedelta(days=days),
            using=KEEPER,
            erasure_id=erasure,
        )
    as_owner(
        "UPDATE batch SET payload = NULL WHERE tenant_id = %s AND NOT is_own", [cast.tenant.id]
    )
    return index


@pytest.mark.slow
def test_erasure_and_retention_of_the_server_are_justified(acme: Cast) -> None:
    begin(acme)
    send_events(acme.tenant, make_call(case_id="mine"))
    one = preview_erasure(acme)
    confirm_erasure(acme, one.id)
    erase_calls(str(acme.tenant.id), str(one.id))
    assert read_erasure(acme, one.id).state == ErasureState.DONE
    send_events(acme.tenant, make_call())
    set_payload_days(acme, 1)
    with patch("audit.tasks.tenants.timezone.now", return_value=timezone.now() + timedelta(days=3)):
        expire(str(acme.tenant.id))
    assert not any(event_texts(acme))
    assert faults(acme) == []


def test_erasure_that_nobody_confirmed_is_found(acme: Cast) -> None:
    send_events(acme.tenant, make_call())
    begin(acme)
    index = declare_by_sql(acme, Kind.ERASURE, 2, erasure=NEVER)
    assert faults(acme) == [
        f"entry {index}: an erasure by ada, but no entry says that they confirmed it"
    ]


def test_erasure_in_the_name_of_another_is_found(acme: Cast) -> None:
    begin(acme)
    send_events(acme.tenant, make_call(case_id="mine"))
    one = preview_erasure(acme)
    confirm_erasure(acme, one.id)
    enter_actions(acme.tenant.id, timezone.now())
    declare_by_sql(acme, Kind.ERASURE, 2, erasure=one.id)
    assert "an erasure by ada, but no entry says that they confirmed it" in faults(acme)[0]


def test_retention_without_a_setting_is_found(acme: Cast) -> None:
    send_events(acme.tenant, make_call())
    begin(acme)
    declare_by_sql(acme, Kind.RETENTION, 2)
    assert "no setting in force lets them expire" in faults(acme)[0]


def test_retention_of_payloads_that_are_too_young_is_found(acme: Cast) -> None:
    begin(acme)
    send_events(acme.tenant, make_call())
    set_payload_days(acme, 30)
    enter_actions(acme.tenant.id, timezone.now())
    declare_by_sql(acme, Kind.RETENTION, 3)
    assert "payloads from 0 on expired, but they arrived at" in faults(acme)[0]


def test_declarations_before_the_baseline_are_not_covered(acme: Cast) -> None:
    send_events(acme.tenant, make_call())
    declare_by_sql(acme, Kind.ERASURE, 2, erasure=NEVER)
    begin(acme)
    assert faults(acme) == []


def test_erasure_of_held_events_is_found_although_the_hold_is_gone_from_the_table(
    acme: Cast,
) -> None:
    begin(acme)
    send_events(acme.tenant, make_call(case_id="other"))
    set_hold(acme, case_id="other")
    set_payload_days(acme, 1)
    enter_actions(acme.tenant.id, timezone.now())
    as_owner("DELETE FROM legal_hold WHERE tenant_id = %s", [acme.tenant.id])
    declare_by_sql(acme, Kind.RETENTION, 3, days=3)
    erased, other = faults(acme)
    assert erased.endswith("it erased events of a call that the hold Case 7 covers")
    assert other.endswith("is another in the database than in the entries of kind hold")


@pytest.mark.slow
@pytest.mark.parametrize(
    "tampering",
    [
        "DELETE FROM legal_hold WHERE tenant_id = %s",
        (
            "UPDATE legal_hold SET released_at = now(), released_by = 'ada', release_reason = 'r'"
            " WHERE tenant_id = %s"
        ),
        "UPDATE legal_hold SET trace_id = 'another' WHERE tenant_id = %s",
    ],
    ids=["deleted", "released", "narrowed"],
)
def test_nothing_is_erased_while_holds_differ_from_the_entries(acme: Cast, tampering: str) -> None:
    begin(acme)
    send_events(acme.tenant, make_call(case_id="mine"))
    one = preview_erasure(acme)
    confirm_erasure(acme, one.id)
    set_hold(acme, case_id="mine")
    set_payload_days(acme, 1)
    as_owner(tampering, [acme.tenant.id])
    later = timezone.now() + timedelta(days=3)
    with pytest.raises(HoldsAlteredError):
        retention.run_slice(acme.tenant.id, later)
    with patch("audit.tasks.tenants.timezone.now", return_value=later):
        expire(str(acme.tenant.id))  # the worker goes on with other tenants
    run_erasure(acme, one.id)
    erasure = read_erasure(acme, one.id)
    assert (erasure.state, erasure.erased_events) == (ErasureState.FAILED, 0)
    assert "not those of the ledger" in erasure.problem
    assert all(event_texts(acme))


def test_list_of_erasures_must_be_what_the_entries_say(acme: Cast) -> None:
    send_events(acme.tenant, make_call())
    index = declare_by_sql(acme, Kind.ERASURE, 2, erasure=NEVER)
    assert faults(acme) == []
    as_owner("UPDATE ledger_erasure SET end_index = 1 WHERE tenant_id = %s", [acme.tenant.id])
    changed = f"entry {index}: the list of erasures in the database does not say what it says"
    assert faults(acme) == [changed]
    with tenant_scope(acme.tenant.id):
        append_entry(acme.tenant.id, Kind.ERASURE, {"ranges": [[0, 1]]}, timezone.now())
    assert len(faults(acme)) == 2


@pytest.mark.slow
def test_list_of_an_erasures_calls_must_be_what_preview_and_confirmation_state(acme: Cast) -> None:
    begin(acme)
    send_events(acme.tenant, make_call(case_id="mine"))
    one = preview_erasure(acme)
    confirm_erasure(acme, one.id)
    run_erasure(acme, one.id)
    assert faults(acme) == []
    as_owner("DELETE FROM erasure_call WHERE tenant_id = %s", [acme.tenant.id])
    assert faults(acme) == [
        f"the erasure {one.id} lists 0 calls, and entries state 1 or other ones",
        f"the erasure {one.id} erased events of a call that it does not list",
    ]


@pytest.mark.slow
def test_erasure_of_a_call_that_is_not_listed_is_found(acme: Cast) -> None:
    begin(acme)
    for case in ("mine", "theirs"):
        send_events(acme.tenant, make_call(case_id=case))
    send_events(acme.tenant, [make_decision("approved", tool_name="theirs")])
    one = preview_erasure(acme)
    confirm_erasure(acme, one.id)
    run_erasure(acme, one.id)
    with tenant_scope(acme.tenant.id, using=KEEPER):
        by = acme.admin.get_username()
        declare(
            acme.tenant.id,
            Kind.ERASURE,
            [(3, 6)],
            "asked to",
            by,
            timezone.now(),
            using=KEEPER,
            erasure_id=one.id,
        )
    assert faults(acme) == [f"the erasure {one.id} erased events of 2 calls that it does not list"]


def test_forged_entries_about_holds_are_found(acme: Cast) -> None:
    set_hold(acme, case_id="mine")
    assert faults(acme) == []
    covers = {"case_id": "forged"}
    entry = {"hold": str(NEVER), "state": "set", "name": "forged", "covers": covers}
    with tenant_scope(acme.tenant.id):
        append_entry(acme.tenant.id, Kind.HOLD, entry, timezone.now())
    assert faults(acme) == [
        f"the hold {NEVER} is another in the database than in the entries of kind hold"
    ]


def test_holds_and_erasures_that_come_while_the_check_reads_are_no_fault(acme: Cast) -> None:
    send_events(acme.tenant, make_call())
    begin(acme)
    declare_by_sql(acme, Kind.RETENTION, 2)
    with tenant_scope(acme.tenant.id):
        reading = unjustified(acme.tenant.id)
        assert "no setting in force" in next(reading)
    set_hold(acme, case_id="mine")
    declare_by_sql(acme, Kind.RETENTION, 2)
    with tenant_scope(acme.tenant.id):
        assert list(reading) == []
