"""The calls of an erasure are those that its preview stated and somebody confirmed."""

import pytest
from django.urls import reverse
from django.utils import timezone

from audit.ledger.erased_calls import CONFIRMED, Stated, listed_calls
from audit.models import Erasure, ErasureState
from tenants.actions import record_action
from tenants.scope import tenant_scope
from tests.support.erasures import confirm_erasure, preview_erasure, read_erasure, run_erasure
from tests.support.factories import Cast, make_call, send_events
from tests.support.ledger_log import as_owner
from tests.support.legal_holds import event_texts
from tests.support.pages import signed_in
from tests.support.retention import recorded_actions

ANOTHER = "The list of calls is not the one that was previewed."


def preview(cast: Cast) -> Erasure:
    """An erasure of one of two calls, counted."""
    for case in ("mine", "theirs"):
        send_events(cast.tenant, make_call(case_id=case))
    return preview_erasure(cast)


def add_calls(cast: Cast, one: Erasure) -> None:
    """Put all calls on the list of an erasure, as the application could."""
    as_owner(
        "INSERT INTO erasure_call (tenant_id, erasure_id, started_at, invocation_id)"
        " SELECT tenant_id, %s, started_at, invocation_id FROM invocation WHERE tenant_id = %s"
        " ON CONFLICT DO NOTHING",
        [one.id, cast.tenant.id],
    )


def confirmed_page(cast: Cast, one: Erasure) -> str:
    address = reverse("erasure_confirm", args=[one.id])
    answer = signed_in(cast.admin).post(address, {"reason": "asked to"}, follow=True)
    return answer.content.decode()


@pytest.mark.slow
def test_preview_and_confirmation_state_the_same_calls(acme: Cast) -> None:
    one = preview(acme)
    confirm_erasure(acme, one.id)
    run_erasure(acme, one.id)
    with tenant_scope(acme.tenant.id):
        stated = Stated.of(listed_calls(acme.tenant.id, one.id))
    assert stated.calls == 1
    for verb in ("erasure.preview", "erasure.confirm"):
        (details,) = recorded_actions(acme, verb)
        assert Stated.read(details) == stated


def test_list_that_was_changed_after_the_preview_is_not_confirmed(acme: Cast) -> None:
    one = preview(acme)
    add_calls(acme, one)
    assert ANOTHER in confirmed_page(acme, one)
    assert read_erasure(acme, one.id).state == ErasureState.COUNTED
    assert recorded_actions(acme, "erasure.confirm") == []


def test_preview_of_an_older_release_is_not_confirmed(acme: Cast) -> None:
    one = preview(acme)
    as_owner(
        "DELETE FROM action WHERE tenant_id = %s AND verb = 'erasure.preview'",
        [acme.tenant.id],
    )
    assert ANOTHER in confirmed_page(acme, one)


@pytest.mark.parametrize("how", ["added", "confirmed again", "another reason"])
def test_nothing_is_erased_unless_it_was_confirmed_so(acme: Cast, how: str) -> None:
    one = preview(acme)
    confirm_erasure(acme, one.id)
    if how == "another reason":
        as_owner(
            "UPDATE erasure SET reason = 'forged' WHERE tenant_id = %s AND id = %s",
            [acme.tenant.id, one.id],
        )
    else:
        add_calls(acme, one)
    if how == "confirmed again":
        with tenant_scope(acme.tenant.id):
            stated = Stated.of(listed_calls(acme.tenant.id, one.id))
            details = {"reason": "asked to", **stated._asdict()}
            record_action(acme.tenant, acme.admin, CONFIRMED, str(one.id), **details)
    run_erasure(acme, one.id)
    one = read_erasure(acme, one.id)
    assert (one.state, one.erased_events) == (ErasureState.FAILED, 0)
    assert one.problem.startswith(ANOTHER)
    assert all(event_texts(acme))


def test_digest_depends_on_each_call(acme: Cast) -> None:
    one = preview(acme)
    with tenant_scope(acme.tenant.id):
        calls = listed_calls(acme.tenant.id, one.id)
    other = [(timezone.now(), calls[0][1])]
    assert len({Stated.of(each).digest for each in (calls, [], other, [*calls, *other])}) == 4
