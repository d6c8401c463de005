"""Rules judged minute by minute on a real database, and the same times tried on the past."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from audit.alerts import life
from audit.alerts.cells import is_shared
from audit.alerts.evaluation import SETTLING, evaluate
from audit.alerts.rules import Rule, WindowCondition
from audit.alerts.stored import all_rules, delete_rule, mute_rule, save_rule
from audit.alerts.trial import Trial, try_rule
from audit.ledger.actions import enter_all_actions
from audit.ledger.baseline import enter_baseline
from audit.ledger.rows import unexplained
from audit.models import Alert, AlertRule, AlertState
from audit.queries.polling import add_polling_tool
from tenants.models import Action
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, send_events

MINUTE = timedelta(minutes=1)


def begin() -> datetime:
    """A full quarter of an hour, six hours ago."""
    at = datetime.now(UTC) - timedelta(hours=6)
    return at.replace(minute=at.minute // 15 * 15, second=0, microsecond=0)


def rule(name: str = "fails", **members: Any) -> Rule:
    defaults = {"measure": "failed", "window_minutes": 5, "alert": 0}
    return Rule.model_validate({"name": name, "condition": defaults | members})


def window_of(of: Rule) -> WindowCondition:
    assert isinstance(of.condition, WindowCondition)
    return of.condition


def make_rules(cast: Cast, at: datetime, *rules: Rule) -> None:
    with tenant_scope(cast.tenant.id):
        for each in rules:
            assert save_rule(cast.tenant, cast.editor, each, at)


def calls(at: datetime, ok: int = 0, failed: int = 0, **members: Any) -> list[dict[str, Any]]:
    """Calls that start in the minute after `at`."""
    events = []
    for n in range(ok + failed):
        started_at = at + timedelta(seconds=1 + n)
        output = {"status": "error", "error": {"type": "FATAL", "message": "no"}}
        failure: dict[str, Any] = {"is_error": True, "output": output} if n >= ok else {}
        events += make_call(started_at=started_at, **failure, **members)
    return events


def judge(cast: Cast, at: datetime) -> int:
    """Judge the instant `at`, when it has settled."""
    with tenant_scope(cast.tenant.id):
        return evaluate(at + SETTLING)


def spans(cast: Cast, name: str = "fails") -> list[tuple[datetime, datetime | None, str]]:
    with tenant_scope(cast.tenant.id):
        alerts = Alert.objects.for_tenant(cast.tenant.id).filter(rule_name=name)
        return [(a.held_from, a.held_to, a.severity) for a in alerts.order_by("held_from")]


def tried(cast: Cast, of: Rule, at: datetime, back: timedelta) -> Trial:
    with tenant_scope(cast.tenant.id):
        return try_rule(window_of(of), at, back=back)


def tried_spans(trial: Trial) -> list[tuple[datetime, datetime | None, str]]:
    return [
        (trial.at(one.start), None if one.end is None else trial.at(one.end), one.severity.value)
        for one in trial.episodes
    ]


def verbs(cast: Cast) -> list[str]:
    with tenant_scope(cast.tenant.id):
        found = Action.objects.filter(tenant_id=cast.tenant.id, verb__startswith="alert")
        return list(found.order_by("at", "id").values_list("verb", flat=True))


def altered(cast: Cast) -> list[str]:
    """Rules and alerts that are not as the ledger says."""
    enter_baseline(cast.tenant.id, datetime.now(UTC))
    enter_all_actions(cast.tenant.id)
    with tenant_scope(cast.tenant.id):
        return unexplained(cast.tenant.id, [Alert, AlertRule])


RULES = (
    rule("fails", warning=1, alert=3),
    rule("share", measure="failed_share", warning=20, alert=60, for_minutes=2),
    rule("slow", query="tool:search", measure="p95", window_minutes=6, alert=1_000),
    rule("stopped", measure="calls", direction="below", window_minutes=7, alert=1, for_minutes=3),
    rule("search", query="tool:search", measure="calls", window_minutes=30, alert=5),
    rule("errors", query="error:FATAL NOT tool:search", measure="calls", alert=1),
    rule("open", measure="open", window_minutes=15, alert=0),
    rule("overdue", measure="overdue", window_minutes=30, alert=0),
    rule("loops", query="trace:loop-*", measure="looped", window_minutes=15, alert=0),
    rule("grown", measure="calls", window_minutes=5, compare_with="day_before", alert=100),
)


@pytest.mark.slow
def test_replaying_the_clock_gives_the_instants_of_the_trial(acme: Cast) -> None:
    start = begin()
    make_rules(acme, start, *RULES)
    assert [is_shared(window_of(each)) for each in RULES].count(True) == 6
    day_before = start - timedelta(days=1)
    for n in range(0, 60, 3):
        send_events(acme.tenant, calls(day_before + n * MINUTE, ok=2))
    waiting: list[tuple[int, dict[str, Any]]] = []
    for n in range(60):
        at = start + n * MINUTE
        sent = calls(at, ok=(n * 7) % 5 if n < 45 else 0, failed=(n * 5) % 4 if n % 20 < 8 else 0)
        if n % 10 == 3:
            sent += calls(at, ok=2, tool_name="search", duration_ms=3_000.0)
        if n % 16 in (2, 3, 9):  # identical calls of one trace, twice more a quarter of an hour
            sent += calls(at, ok=1, trace_id=f"loop-{n // 32}")
        if n % 12 == 1:  # it ends eight minutes later, long after its timeout
            opened, ended = make_call(
                started_at=at + timedelta(seconds=30), duration_ms=480_000, timeouts_ms=120_000
            )
            sent.append(opened)
            waiting.append((n + 8, ended))
        sent += [event for due, event in waiting if due == n]
        if sent:
            send_events(acme.tenant, sent)
        judge(acme, at + MINUTE)
        judge(acme, at + MINUTE)  # twice: nothing is opened again
    end = start + 60 * MINUTE
    found = {each.name: tried_spans(tried(acme, each, end, end - start)) for each in RULES}
    for each in RULES:
        assert spans(acme, each.name) == found[each.name][: life.OPENED_AN_HOUR * 2], each.name
        assert found[each.name], f"{each.name} never fired: it shows nothing"


def test_the_third_identical_call_of_a_trace_within_an_hour_is_a_loop(acme: Cast) -> None:
    start = begin()
    make_rules(acme, start, rule("loops", measure="looped", window_minutes=15, alert=0))
    others: tuple[tuple[int, dict[str, Any]], ...] = (
        (0, {}),
        (10, {"trace_id": "another"}),
        (20, {"call_id": "2" * 64}),  # other arguments
        (30, {}),
        (61, {}),  # the first one is more than an hour ago
        (89, {}),
    )
    same: dict[str, Any] = {"trace_id": "one", "call_id": "1" * 64}
    for n, more in others:
        send_events(acme.tenant, calls(start + n * MINUTE, ok=1, **same | more))
    judge(acme, start + 120 * MINUTE)
    assert spans(acme, "loops") == [(start + 90 * MINUTE, start + 105 * MINUTE, "alert")]
    with tenant_scope(acme.tenant.id):
        add_polling_tool("get_weather")
    trial = tried(
        acme, rule("loops", measure="looped", alert=0), start + 120 * MINUTE, MINUTE * 120
    )
    assert trial.episodes == [], "a polling tool repeats its calls on purpose"


def test_long_windows_are_judged_by_quarters_from_the_sums_of_pages(acme: Cast) -> None:
    start = begin()
    of = rule(window_minutes=720, warning=1, alert=3, query="tool:get_weather")
    make_rules(acme, start, of)
    for n in range(8):
        send_events(acme.tenant, calls(start + n * 15 * MINUTE, failed=1))
        judge(acme, start + (n + 1) * 15 * MINUTE)
        assert judge(acme, start + (n + 1) * 15 * MINUTE + MINUTE) == 0, "not a new instant"
    trial = tried(acme, of, start + 120 * MINUTE, timedelta(hours=2))
    assert trial.is_whole
    assert spans(acme) == tried_spans(trial) == [(start + 30 * MINUTE, None, "alert")]
    with tenant_scope(acme.tenant.id):
        (alert,) = Alert.objects.for_tenant(acme.tenant.id)
    assert (alert.value, alert.threshold) == (4, 3)


@pytest.mark.slow
def test_late_and_duplicate_events_neither_miss_nor_repeat_an_alert(acme: Cast) -> None:
    start = begin()
    make_rules(acme, start, rule(alert=1))
    late, more = calls(start, failed=2), calls(start + 6 * MINUTE, failed=2)
    for n in range(1, 30):
        judge(acme, start + n * MINUTE)
    assert spans(acme) == []

    send_events(acme.tenant, late)
    judge(acme, start + 30 * MINUTE)
    held = (start + MINUTE, start + 6 * MINUTE, "alert")
    assert spans(acme) == [held]
    with tenant_scope(acme.tenant.id):
        (alert,) = Alert.objects.for_tenant(acme.tenant.id)
        assert alert.is_late
        assert alert.state == AlertState.OPEN, "nobody has seen it, so it is not resolved"

    send_events(acme.tenant, late)  # duplicates
    judge(acme, start + 35 * MINUTE)
    send_events(acme.tenant, more)
    judge(acme, start + 40 * MINUTE)
    # Later than the lateness: it changes nothing any more, and a trial finds it.
    send_events(acme.tenant, calls(start - 40 * MINUTE, failed=2))
    judge(acme, start + 45 * MINUTE)
    known = [held, (start + 7 * MINUTE, start + 12 * MINUTE, "alert")]
    assert spans(acme) == known
    trial = tried(acme, rule(alert=1), start + 45 * MINUTE, timedelta(hours=2))
    assert tried_spans(trial)[1:] == known


def test_a_gap_that_late_events_fill_is_a_second_alert_of_its_own_time(acme: Cast) -> None:
    start = begin()
    make_rules(acme, start, rule())
    send_events(acme.tenant, calls(start, failed=1))
    for n in range(1, 10):
        judge(acme, start + n * MINUTE)
    first = (start + MINUTE, start + 6 * MINUTE, "alert")
    assert spans(acme) == [first]
    send_events(acme.tenant, calls(start + 4 * MINUTE, failed=1))
    send_events(acme.tenant, calls(start + 9 * MINUTE, failed=1))
    judge(acme, start + 10 * MINUTE)
    assert spans(acme) == [first, (start + 6 * MINUTE, None, "alert")]


def test_a_worker_that_was_away_judges_what_it_missed_and_says_so(acme: Cast) -> None:
    start = begin()
    make_rules(acme, start, rule())
    judge(acme, start + MINUTE)
    for n in (10, 50, 100):
        send_events(acme.tenant, calls(start + n * MINUTE, failed=1))
    judge(acme, start + 120 * MINUTE)
    assert spans(acme) == [
        (start + (n + 1) * MINUTE, start + (n + 6) * MINUTE, "alert") for n in (10, 50, 100)
    ]
    assert "alert_rule.catch_up" in verbs(acme)
    assert verbs(acme).count("alert.fire") == 3


def test_the_life_of_an_alert_is_in_the_ledger(acme: Cast) -> None:
    start = begin()
    make_rules(acme, start, rule(warning=0, alert=2))
    send_events(acme.tenant, calls(start, failed=1))
    judge(acme, start + MINUTE)
    with tenant_scope(acme.tenant.id):
        (alert,) = Alert.objects.for_tenant(acme.tenant.id)
        assert life.acknowledge(alert, acme.viewer, "on it", start + MINUTE)
        assert not life.acknowledge(alert, acme.viewer, "again", start + MINUTE)
    send_events(acme.tenant, calls(start + MINUTE, failed=2))
    judge(acme, start + 2 * MINUTE)
    with tenant_scope(acme.tenant.id):
        (alert,) = Alert.objects.for_tenant(acme.tenant.id)
        assert (alert.severity, alert.state, alert.value) == ("alert", AlertState.OPEN, 3)
        assert life.resolve(alert, acme.editor, "known outage", start + 2 * MINUTE)
    judge(acme, start + 3 * MINUTE)
    assert len(spans(acme)) == 1, "while it still holds there is no other one"
    for n in range(4, 12):
        judge(acme, start + n * MINUTE)
    send_events(acme.tenant, calls(start + 12 * MINUTE, failed=1))
    for n in range(13, 20):
        judge(acme, start + n * MINUTE)
    assert [end for _, end, _ in spans(acme)] == [start + 7 * MINUTE, start + 18 * MINUTE]
    assert verbs(acme) == [
        "alert_rule.create",
        *("alert.fire", "alert.acknowledge", "alert.worsen", "alert.resolve"),
        *("alert.fire", "alert.resolve"),
    ]
    assert not altered(acme)
    with tenant_scope(acme.tenant.id):
        Alert.objects.for_tenant(acme.tenant.id).update(resolved_by="somebody else")
    assert altered(acme)


@pytest.mark.slow
def test_a_rule_that_flaps_does_not_fill_the_ledger(acme: Cast) -> None:
    start = begin()
    make_rules(acme, start, rule())
    for n in range(0, 100, 7):
        send_events(acme.tenant, calls(start + n * MINUTE, failed=1))
    judge(acme, start + 110 * MINUTE)
    assert len(spans(acme)) == life.OPENED_AN_HOUR
    with tenant_scope(acme.tenant.id):
        last = Alert.objects.for_tenant(acme.tenant.id).order_by("-held_from")[0]
    assert last.uncounted == 15 - life.OPENED_AN_HOUR
    before = len(verbs(acme))
    judge(acme, start + 111 * MINUTE)
    with tenant_scope(acme.tenant.id):
        last = Alert.objects.for_tenant(acme.tenant.id).order_by("-held_from")[0]
    assert last.uncounted == 15 - life.OPENED_AN_HOUR, "each is counted once"
    assert len(verbs(acme)) == before


def test_rules_are_saved_once_renamed_muted_and_deleted(acme: Cast, globex: Cast) -> None:
    start = begin()
    make_rules(acme, start, rule())
    with tenant_scope(acme.tenant.id):
        assert not save_rule(acme.tenant, acme.editor, rule(), start), "it is like this already"
        renamed = rule("other")
        assert save_rule(acme.tenant, acme.editor, renamed, start, former_name="fails")
        (stored,) = all_rules()
        assert stored.name == "other"
        mute_rule(acme.tenant, acme.editor, stored, 60, "maintenance", start)
    send_events(acme.tenant, calls(start, failed=1))
    judge(acme, start + MINUTE)
    with tenant_scope(acme.tenant.id):
        (alert,) = Alert.objects.for_tenant(acme.tenant.id)
        assert alert.is_muted
        delete_rule(acme.tenant, acme.editor, stored, start + 2 * MINUTE)
        alert.refresh_from_db()
        assert (alert.state, alert.resolve_note) == (AlertState.RESOLVED, "The rule was deleted.")
    judge(acme, start + 3 * MINUTE)
    with tenant_scope(globex.tenant.id):
        assert not all_rules()
    assert not altered(acme)
