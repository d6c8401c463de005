"""Sums that are kept between two evaluations: what is read again, and what is not."""

from datetime import UTC, datetime, timedelta

import pytest

from audit.alerts import kept
from audit.alerts.cells import ToolCells, read_calls, read_tools
from audit.alerts.evaluation import SETTLING, evaluate
from audit.alerts.judging import Cell
from audit.alerts.rules import Rule, WindowCondition
from audit.alerts.stored import save_rule
from audit.models import Alert, AlertRule
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, send_events

MINUTE = timedelta(minutes=1)

type Read = list[tuple[datetime, datetime]]


@pytest.fixture
def start() -> datetime:
    """A full hour, some hours ago."""
    return datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=5)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Read:
    """The times whose calls are read."""
    listed: Read = []

    def note_tools(
        since: datetime, until: datetime, timeout_ms: int, *, durations: bool
    ) -> ToolCells:
        listed.append((since, until))
        return read_tools(since, until, timeout_ms, durations=durations)

    def note_calls(
        condition: WindowCondition, since: datetime, until: datetime, timeout_ms: int
    ) -> dict[int, Cell]:
        listed.append((since, until))
        return read_calls(condition, since, until, timeout_ms)

    monkeypatch.setattr(kept, "read_tools", note_tools)
    monkeypatch.setattr(kept, "read_calls", note_calls)
    return listed


def make_rule(cast: Cast, start: datetime, query: str = "", **members: object) -> None:
    condition = {"measure": "failed", "window_minutes": 60, "alert": 0, "query": query, **members}
    with tenant_scope(cast.tenant.id):
        rule = Rule.model_validate({"name": "fails", "condition": condition})
        save_rule(cast.tenant, cast.editor, rule, start)


def judge(cast: Cast, at: datetime) -> list[Alert]:
    """Judge an instant. Returns the alerts."""
    with tenant_scope(cast.tenant.id):
        evaluate(at + SETTLING)
        assert not AlertRule.objects.for_tenant(cast.tenant.id).exclude(problem="").exists()
        return list(Alert.objects.for_tenant(cast.tenant.id).order_by("held_from"))


@pytest.mark.parametrize("query", ["", "trace:some-*"])
def test_only_quarters_of_an_hour_with_other_sums_are_read(
    acme: Cast, start: datetime, reads: Read, query: str
) -> None:
    make_rule(acme, start, query)
    early, end = make_call(started_at=start - 20 * MINUTE, trace_id="some-1", is_error=True)
    other = make_call(started_at=start - 50 * MINUTE, trace_id="some-2")
    send_events(acme.tenant, [early, *other])
    assert judge(acme, start + MINUTE) == []
    assert sum((until - since for since, until in reads), timedelta()) == 30 * MINUTE

    reads.clear()
    assert judge(acme, start + 2 * MINUTE) == []
    assert reads == [], "nothing is new"

    send_events(acme.tenant, [end])
    (alert,) = judge(acme, start + 3 * MINUTE)
    assert alert.held_from == start + 3 * MINUTE, "at once, although its call began long ago"
    assert reads == [(start - 30 * MINUTE, start - 15 * MINUTE)]


def test_what_no_sums_show_is_found_when_all_is_read_again(acme: Cast, start: datetime) -> None:
    make_rule(acme, start, "model:big", measure="calls")
    begun, end = make_call(started_at=start, context={"model": "big"})
    del end["context"]
    send_events(acme.tenant, [end])
    assert judge(acme, start + MINUTE) == []
    send_events(acme.tenant, [begun])
    found = [judge(acme, start + n * MINUTE) for n in (2, 5)]
    assert [alert.held_from for alert in found[-1]] == [start + MINUTE]


def test_sums_that_are_too_many_are_lost_and_read_again(
    acme: Cast, globex: Cast, start: datetime, reads: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "MINUTES_MAX", 1)
    monkeypatch.setattr(kept, "_OF_TENANTS", type(kept._OF_TENANTS)())
    for cast in (acme, globex):
        make_rule(cast, start)
        send_events(cast.tenant, make_call(started_at=start, is_error=True))
        assert len(judge(cast, start + MINUTE)) == 1
    assert list(kept._OF_TENANTS) == [globex.tenant.id], "of the tenant judged last"
    reads.clear()
    assert len(judge(globex, start + 2 * MINUTE)) == 1
    assert reads == []
    assert len(judge(acme, start + 2 * MINUTE)) == 1
    assert reads == [(start, start + 15 * MINUTE)]


def test_a_failure_loses_what_is_kept(acme: Cast) -> None:
    with pytest.raises(ZeroDivisionError), kept.kept_sums(acme.tenant.id):
        raise ZeroDivisionError
    assert acme.tenant.id not in kept._OF_TENANTS
