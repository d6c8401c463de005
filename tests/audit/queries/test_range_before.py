"""The range before by its parts: of latency, violations and traces as of the overview."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from audit.queries.latency import ToolFilter, latency
from audit.queries.over_time import over_time
from audit.queries.time_range import TimeRange
from audit.queries.traces_over_time import traces_over_time
from audit.queries.violations import ViolationFilter, violations, violations_before
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, send_events
from tests.support.pages import signed_in, text
from tests.support.traces import VIOLATED_GUARD

pytestmark = pytest.mark.slow
NOW = datetime.now(UTC).replace(minute=30, second=0, microsecond=0) - timedelta(hours=1)


@pytest.fixture
def counted(acme: Cast) -> TimeRange:
    """Calls at uneven distances over more than two days, every third one with a violation."""
    events = []
    for n in range(60):
        at = NOW - timedelta(minutes=7 + n * 53)
        guard = VIOLATED_GUARD if n % 3 == 0 else None
        events += make_call(trace_id=f"t-{n}", started_at=at, duration_ms=100.0 + n, guard=guard)
    send_events(acme.tenant, events)
    return TimeRange(NOW - timedelta(hours=24), NOW, UTC)


def test_its_parts_are_what_the_overview_has(acme: Cast, counted: TimeRange) -> None:
    with tenant_scope(acme.tenant.id):
        expected = over_time(counted, with_parts_before=True)
        spent = latency(counted, ToolFilter(), with_parts_before=True)
        alone = latency(counted, ToolFilter())
        broken = violations_before(counted, ViolationFilter())
        traces = traces_over_time(counted, "")
    assert sum(part.calls for part in expected.before) > 20
    assert [part.calls for part in spent.before] == [part.calls for part in expected.before]
    assert [part.latency for part in spent.before] == [part.latency for part in expected.before]
    assert (spent.parts, spent.total, spent.previous) == (alone.parts, alone.total, alone.previous)
    assert (spent.versions, alone.before) == (alone.versions, [])
    assert broken == [part.violations for part in expected.before]
    traced = [sum(part) for part in zip(*traces.before.values(), strict=True)]
    assert traced == [part.calls for part in expected.before]
    now = [sum(part) for part in zip(*traces.by_state.values(), strict=True)]
    assert now == [part.calls for part in expected.parts]


@pytest.mark.parametrize("days", [8, 40])
def test_a_long_range_has_violations_before_by_day(
    acme: Cast, counted: TimeRange, days: int
) -> None:
    start = counted.end - timedelta(hours=20)
    later = TimeRange(start, start + timedelta(days=days), UTC)
    with tenant_scope(acme.tenant.id):
        before = violations_before(later, ViolationFilter())
        of_range = violations(later.previous, ViolationFilter())
        parts = violations(later, ViolationFilter()).bounds
    assert sum(before) == of_range.total > 0
    assert len(before) == len(parts) - 1


def test_a_range_without_the_same_parts_has_none(acme: Cast, counted: TimeRange) -> None:
    uneven = TimeRange(NOW - timedelta(hours=7, minutes=7), NOW, UTC)
    with tenant_scope(acme.tenant.id):
        assert latency(uneven, ToolFilter(), with_parts_before=True).before == []
        assert violations_before(uneven, ViolationFilter()) == []
        assert traces_over_time(uneven, "").before == {}


@pytest.mark.parametrize(
    ("page", "threshold"),
    [
        ("/latency/?range=24h", "line-tokens"),
        ("/violations/?range=24h", "line-violations"),
        ("/charts/calls?q=since:24h", "line-list"),
        ("/charts/traces?range=24h", "line-list"),
    ],
)
def test_charts_have_the_range_before_and_a_threshold(
    acme: Cast, page: str, threshold: str
) -> None:
    at = timezone.now()
    events = []
    for hours in (1, 30, 60):
        events += make_call(
            trace_id=f"t-{hours}",
            started_at=at - timedelta(hours=hours),
            guard=VIOLATED_GUARD,
            token_usage={"prompt": 10, "completion": 5},
        )
    send_events(acme.tenant, events)
    shown = signed_in(acme.viewer).get(f"{page}&{threshold}=7").content.decode()
    assert "24 h before" in text(shown)
    assert "Threshold 7" in text(shown)
    form = shown.partition(f'name="{threshold}"')[0].rpartition("<form")[2]
    list_of = {"calls": "/calls/", "traces": "/traces/"}
    kind = page.removeprefix("/charts/").partition("?")[0]
    assert f'action="{list_of.get(kind, page.partition("?")[0])}"' in form
