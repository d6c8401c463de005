"""Trials that the worker goes on with: slices, cancel, kills, and the result of the short way."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from audit.alerts import trial, trying
from audit.alerts.rules import Rule, WindowCondition
from audit.alerts.trial import nothing_read, try_rule
from audit.models import AlertTrial
from tenants.scope import tenant_scope
from tenants.slices import JobState
from tests.support.factories import Cast, make_call, send_events
from tests.support.pages import signed_in

END = datetime.now(UTC).replace(second=0, microsecond=0)
RULES = [
    {"measure": "failed", "query": "trace:trace-*", "window_minutes": 15, "alert": 0},
    {"measure": "p95", "query": "", "window_minutes": 60, "alert": 10, "for_minutes": 5},
    {"measure": "calls", "compare_with": "day_before", "window_minutes": 30, "alert": 20},
    {"measure": "open", "window_minutes": 60, "alert": 0},
]


def start(cast: Cast, **condition: object) -> AlertTrial:
    rule = Rule.model_validate({"name": "tried", "condition": condition})
    assert isinstance(rule.condition, WindowCondition)
    with tenant_scope(cast.tenant.id):
        read = nothing_read(rule.condition, END)
        return trying.start_trial(rule, None, read, END, timezone.now(), "ann")


def again(cast: Cast, one: AlertTrial) -> AlertTrial:
    with tenant_scope(cast.tenant.id):
        stored = trying.find_trial(one.id)
    assert stored is not None
    return stored


@pytest.fixture
def history(acme: Cast) -> None:
    """Calls of some days: as many partitions as there are."""
    for hours in (1, 2, 26, 50):
        at = END - timedelta(hours=hours)
        send_events(acme.tenant, make_call(started_at=at, is_error=True))
        send_events(acme.tenant, make_call(started_at=at, is_open=True))


@pytest.mark.slow
@pytest.mark.usefixtures("history")
@pytest.mark.parametrize("condition", RULES, ids=lambda each: each["measure"])
def test_slices_give_what_a_page_gives_at_once(acme: Cast, condition: dict[str, object]) -> None:
    one = start(acme, **condition)
    steps = 1
    while trying.run_slice(acme.tenant.id, one.id, seconds=0):
        steps += 1
        assert 0 < trying.percent_read(again(acme, one)) <= 100
    one = again(acme, one)
    assert (one.state, trying.percent_read(one)) == (JobState.DONE, 100)
    assert steps >= 30
    with tenant_scope(acme.tenant.id):
        whole = try_rule(trying.rule_of_trial(one)[1], END, seconds=600)
    found = trying.trial_of(one)
    assert found.is_whole and found.episodes, "it fired"
    assert (found.values, found.episodes) == (whole.values, whole.episodes)


@pytest.mark.slow
def test_a_page_that_cannot_read_all_lets_the_worker_go_on(
    acme: Cast, globex: Cast, history: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("audit.pages.alerts.rule_list.try_rule", _only_a_day)
    editor = signed_in(acme.editor)
    form = {
        "name": "failing",
        "measure": "failed",
        "window_minutes": "60",
        "alert": "0",
        "query": "trace:trace-*",
        "compare_with": "number",
        "direction": "above",
        "for_minutes": "0",
        "no_data": "nothing",
        "act": "try",
    }
    answer = editor.post("/alerts/rules/new", form)
    address = answer["Location"]
    assert answer.status_code == 302 and address.startswith("/alerts/trials/")
    waiting = editor.get(address).content.decode()
    assert "Reading the calls of 30 days" in waiting and "<progress" in waiting
    assert signed_in(globex.editor).get(address).status_code == 404
    assert signed_in(acme.viewer).get(address).status_code == 403

    one = AlertTrial(tenant_id=acme.tenant.id, id=address.rpartition("/")[2])
    while trying.run_slice(acme.tenant.id, one.id):
        pass
    done = re.sub(r"\s+", " ", editor.get(address).content.decode())
    assert "In the last 30 days this would have fired 3 times." in done
    assert 'action="/alerts/rules/new"' in done and 'value="trace:trace-*"' in done
    assert editor.post(f"{address}/cancel").status_code == 302
    assert again(acme, one).state == JobState.DONE, "it had ended"


def test_cancelled_trial_shows_what_was_read_and_is_forgotten_after_a_day(
    acme: Cast, history: None
) -> None:
    one = start(acme, measure="failed", window_minutes=60, alert=0)
    trying.run_slice(acme.tenant.id, one.id, seconds=0)
    editor = signed_in(acme.editor)
    assert editor.post(f"/alerts/trials/{one.id}/cancel").status_code == 302
    assert not trying.run_slice(acme.tenant.id, one.id)
    page = re.sub(r"\s+", " ", editor.get(f"/alerts/trials/{one.id}").content.decode())
    assert "this would have fired 1 time." in page
    assert "Cancelled before all 30 days were read." in page
    with tenant_scope(acme.tenant.id):
        trying.forget_old(timezone.now() + timedelta(hours=23))
        assert trying.find_trial(one.id) is not None
        trying.forget_old(timezone.now() + timedelta(hours=25))
        assert trying.find_trial(one.id) is None


def test_calls_that_cannot_be_read_in_time_end_a_trial(
    acme: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_long(*_: object) -> None:
        raise TimeoutError

    monkeypatch.setattr(trial, "read_calls", too_long)
    one = start(acme, measure="failed", window_minutes=60, alert=0)
    assert not trying.run_slice(acme.tenant.id, one.id)
    one = again(acme, one)
    assert one.state == JobState.FAILED and "eight seconds" in one.problem
    page = signed_in(acme.editor).get(f"/alerts/trials/{one.id}").content.decode()
    assert one.problem in page


def _only_a_day(condition: WindowCondition, end: datetime) -> trial.Trial:
    return try_rule(condition, end, seconds=0)
