"""Figures of any range equal those counted from the log's events."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import batched, pairwise
from typing import Any
from uuid import uuid4
from zoneinfo import ZoneInfo

import pytest

from audit.log.payload import unpack
from audit.models import Batch
from audit.queries.over_time import Counts, OverTime, over_time
from audit.queries.summary import summary
from audit.queries.time_range import LENGTHS, TimeRange
from audit.queries.violations import ViolationFilter, new_violations, violations
from tenants.models import Tenant
from tenants.scope import tenant_scope
from tests.support.expected_calls import ExpectedCall, assert_percentiles
from tests.support.factories import (
    make_call,
    make_ingest_key,
    make_tenant,
    send_events,
)
from tests.support.recount import assert_consistent
from tests.support.time_zones import NOW, ZONES

TOOLS = ["search", "fetch", "calculate"]
KINDS = [
    ("$.items[{}].name", "WRONG_TYPE"),
    ("$.unit", "ENUM_MISMATCH"),
    ("$.id", "MISSING_REQUIRED"),
]
OUTCOMES = [("warn", "passed"), ("throw", "failed"), ("fallback", "fallback")]


@dataclass
class Log:
    """A tenant and its calls, as read from the log."""

    tenant: Tenant
    calls: list[ExpectedCall] = field(default_factory=list)

    def within(self, start: datetime, end: datetime) -> list[ExpectedCall]:
        return [call for call in self.calls if start <= call.at < end]


def instants(rng: random.Random) -> Iterator[datetime]:
    """Instants around every edge, and random ones."""
    hour = NOW.replace(minute=0, second=0, microsecond=0)
    for n in range(-50, 1):
        for minutes in (0, 7.5, 15, 30, 45):
            edge = hour + n * timedelta(hours=1) + timedelta(minutes=minutes)
            yield from (edge - timedelta(microseconds=1), edge)
    for _, length in LENGTHS.values():
        for offset_us in (-1, 0, 1):
            if length < timedelta(days=34):
                yield NOW - length + timedelta(microseconds=offset_us)
    for _ in range(500):
        yield NOW - timedelta(seconds=rng.uniform(0, 34 * 86_400) ** rng.choice([0.6, 1]))


def one_call(rng: random.Random, at: datetime) -> list[dict[str, Any]]:
    kind = rng.random()
    outcome: dict[str, Any] = {"status": "ok", "data": {}, "meta": {"took_ms": 1}}
    if kind < 0.2:
        outcome = {"status": "error", "error": {"type": "FATAL", "message": "no"}, "meta": {}}
        outcome["meta"] = {"took_ms": 1}
    outcome["meta"]["token_usage"] = {"prompt": rng.randrange(99), "completion": rng.randrange(9)}
    guard_violations = [
        {
            "path": path.format(n),
            "severity": "error",
            "code": code,
            "expected": "string",
            "received": "number",
        }
        for path, code in rng.sample(KINDS, rng.choice([0, 0, 1, 2]))
        for n in range(rng.choice([1, 3]) if "{}" in path else 1)
    ]
    strategy, treated = rng.choice(OUTCOMES)
    return make_call(
        started_at=at,
        duration_ms=rng.lognormvariate(4, 1.5),
        tool_name=rng.choice(TOOLS),
        tool_version=rng.choice(["1", "2"]),
        is_open=rng.random() < 0.05,
        output=outcome,
        guard={
            "strategy": strategy,
            "outcome": treated if guard_violations else "passed",
            "violations": guard_violations,
        },
    )


@pytest.fixture(scope="module")
def log() -> Log:
    """About 800 calls of a month in random order: ends before starts, repeated, and late."""
    rng = random.Random(7)
    tenant = make_tenant("figures")
    key = make_ingest_key(tenant)
    events = [event for at in instants(rng) if at < NOW for event in one_call(rng, at)]
    events += rng.sample(events, 40)
    rng.shuffle(events)
    for some in batched(events, 300):
        assert send_events(tenant, some, key=key)["rejected"] == []
    calls: dict[str, ExpectedCall] = {}
    ends: dict[str, dict[str, Any]] = {}
    with tenant_scope(tenant.id):
        for batch in Batch.objects.for_tenant(tenant.id):
            assert batch.payload is not None
            for _, raw in unpack(bytes(batch.payload)):
                event = json.loads(raw)
                if event["type"] == "toolExecutionEnd":
                    ends[event["invocation_id"]] = event
                at = datetime.fromisoformat(event["started_at"])
                calls.setdefault(
                    event["invocation_id"],
                    ExpectedCall(event["tool_name"], event["tool_version"], at),
                )
    for invocation_id, end in ends.items():
        calls[invocation_id].end = end
    return Log(tenant, list(calls.values()))


def recounted(calls: list[ExpectedCall]) -> Counts:
    ended = [call for call in calls if call.end is not None]
    usage = [call.end["output"]["meta"]["token_usage"] for call in ended if call.end]
    return Counts(
        ok=sum(not call.is_failed for call in ended),
        failed=sum(call.is_failed for call in ended),
        open=len(calls) - len(ended),
        violating=sum(bool(call.violations) for call in ended),
        violations=sum(len(call.violations) for call in ended),
        prompt_tokens=sum(one["prompt"] for one in usage),
        completion_tokens=sum(one["completion"] for one in usage),
    )


def as_counts(counts: Counts) -> Counts:
    return Counts(**{name: getattr(counts, name) for name in Counts.__dataclass_fields__})


def assert_equal(figures: OverTime, log: Log) -> None:
    of = figures.of
    calls = log.within(of.start, of.end)
    assert as_counts(figures.total) == recounted(calls)
    assert as_counts(figures.previous) == recounted(log.within(of.previous.start, of.start))
    for part, (start, end) in zip(figures.parts, of.parts, strict=True):
        assert as_counts(part) == recounted(log.within(start, end)), (start, end)
        assert_percentiles(part.duration_ms, log.within(start, end))
    for tool in TOOLS:
        own = [call for call in calls if call.tool == tool]
        if own:
            assert as_counts(figures.tools[tool].total) == recounted(own)
            assert_percentiles(figures.tools[tool].total.duration_ms, own)
            for calls_of_part, (start, end) in zip(
                figures.tools[tool].calls, of.parts, strict=True
            ):
                assert calls_of_part == recounted([c for c in own if start <= c.at < end]).calls
    assert_percentiles(figures.total.duration_ms, calls)


@pytest.mark.generated(12)
@pytest.mark.slow
@pytest.mark.parametrize("zone", ZONES, ids=lambda zone: str(zone.tzname(NOW)))
@pytest.mark.parametrize("name", LENGTHS)
def test_figures_of_every_range_equal_a_recount_of_the_log(
    log: Log, name: str, zone: tzinfo
) -> None:
    of = TimeRange(NOW - LENGTHS[name][1], NOW, zone, name)
    with tenant_scope(log.tenant.id):
        assert_equal(over_time(of), log)


@pytest.mark.parametrize("seed", range(12))
def test_figures_of_custom_ranges_equal_a_recount_of_the_log(log: Log, seed: int) -> None:
    rng = random.Random(seed)
    start = NOW - timedelta(seconds=rng.uniform(1, 33 * 86_400))
    length = timedelta(seconds=rng.uniform(1, 40 * 86_400) ** rng.choice([0.5, 1]))
    of = TimeRange(start, start + length, rng.choice(ZONES))
    with tenant_scope(log.tenant.id):
        assert_equal(over_time(of), log)


@pytest.mark.slow
def test_rollups_equal_the_sum_of_the_calls(log: Log) -> None:
    assert_consistent(log.tenant)


def test_late_events_count_at_their_own_time() -> None:
    tenant = make_tenant("late")
    key = make_ingest_key(tenant)
    at = NOW - timedelta(days=9, minutes=7)
    start, end = make_call(started_at=at, tool_name="late")
    of = TimeRange(NOW - timedelta(days=30), NOW, ZoneInfo("Asia/Kathmandu"), "30d")
    for event, expected in ((end, (1, 0)), (start, (1, 0)), (end, (1, 0))):
        send_events(tenant, [event], key=key)
        with tenant_scope(tenant.id):
            figures = over_time(of)
        assert (figures.total.calls, figures.total.open) == expected
        (part,) = [n for n, one in enumerate(figures.parts) if one.calls]
        assert of.parts[part][0] <= at < of.parts[part][1]


def test_api_summary_equals_the_figures(log: Log) -> None:
    start = NOW - timedelta(days=3, minutes=17)
    with tenant_scope(log.tenant.id):
        shown = summary(start, NOW)
        figures = over_time(TimeRange(start, NOW, UTC)).total
    assert (shown.calls, shown.open, shown.errors) == (figures.calls, figures.open, figures.failed)
    assert list(shown.latency) == figures.latency


@pytest.mark.parametrize("zone", ZONES[1:3], ids=str)
@pytest.mark.parametrize("hours", [0.3, 24, 47, 49, 7 * 24, 30 * 24 + 0.21, 34.5 * 24])
def test_violations_equal_a_recount_of_the_log(log: Log, hours: float, zone: tzinfo) -> None:
    of = TimeRange(NOW - timedelta(hours=hours), NOW - timedelta(seconds=1), zone)
    with tenant_scope(log.tenant.id):
        report = violations(of, ViolationFilter())
    expected: dict[tuple[str, ...], list[tuple[datetime, str]]] = {}
    treated: dict[tuple[str, str], int] = {}
    for call in log.within(of.start, of.end):
        for one in call.violations:
            pattern = "$.items[*].name" if "items" in one["path"] else one["path"]
            key = (call.tool, call.version, pattern, one["code"])
            expected.setdefault(key, []).append(
                (call.at, str(call.end and call.end["invocation_id"]))
            )
            assert call.end is not None
            how = (call.end["guard"]["strategy"], call.end["guard"]["outcome"])
            treated[how] = treated.get(how, 0) + 1
    by_version: dict[tuple[str, str], int] = {}
    for call in log.within(of.start, of.end):
        by_version[call.tool, call.version] = by_version.get((call.tool, call.version), 0) + 1
    assert {
        (one.tool_name, one.tool_version, one.path_pattern, one.code): (
            one.violations,
            one.calls,
            one.of_calls,
            one.first_at,
            one.last_at,
            sum(value or 0 for value in one.course),
        )
        for one in report.kinds
    } == {
        key: (
            len(seen),
            len({invocation_id for _, invocation_id in seen}),
            by_version[key[0], key[1]],
            min(seen)[0],
            max(seen)[0],
            len(seen),
        )
        for key, seen in expected.items()
    }
    assert {(one.strategy, one.outcome): one.violations for one in report.treatments} == treated
    assert report.total == sum(map(len, expected.values()))


def test_violations_can_be_filtered(log: Log) -> None:
    of = TimeRange(NOW - timedelta(days=10), NOW, UTC)
    with tenant_scope(log.tenant.id):
        everything = violations(of, ViolationFilter())
        for wanted in (
            ViolationFilter(tool="search", code="MISSING_REQUIRED"),
            ViolationFilter(version="2", path="$.items[*].name"),
            ViolationFilter(tool=str(uuid4())),
        ):
            expected = [
                (one.tool_name, one.tool_version, one.code, one.violations, one.of_calls)
                for one in everything.kinds
                if wanted.tool in {None, one.tool_name}
                and wanted.version in {None, one.tool_version}
                and wanted.code in {None, one.code}
                and wanted.path in {None, one.path_pattern}
            ]
            assert [
                (one.tool_name, one.tool_version, one.code, one.violations, one.of_calls)
                for one in violations(of, wanted).kinds
            ] == expected


def test_new_kind_of_violation_names_the_version_that_introduced_the_kind() -> None:
    tenant = make_tenant("fresh")
    members = {"severity": "error", "expected": "a", "received": "b"}

    def broken(version: str, code: str, **ago: float) -> list[dict[str, Any]]:
        guard = {"strategy": "warn", "outcome": "passed"}
        return make_call(
            tool_name="search",
            tool_version=version,
            started_at=NOW - timedelta(**ago),
            guard=guard
            | {"violations": [{"path": "$.a[0]", "code": code, **members}] if code else []},
        )

    calls = [
        *broken("9", "WRONG_TYPE", days=20),
        *broken("9", "WRONG_TYPE", hours=2),
        *broken("10", "WRONG_TYPE", hours=1),
        *broken("10", "COERCED", hours=1),
        *broken("11", "COERCED", minutes=30),
        *broken("8", "", days=20),
    ]
    send_events(tenant, calls)
    day = TimeRange(NOW - timedelta(days=1), NOW, UTC)
    with tenant_scope(tenant.id):
        new = new_violations(day, limit=5, has_decisions=False)
        kinds = violations(day, ViolationFilter()).kinds
        narrowed = violations(day, ViolationFilter(version="11")).kinds
    assert [(one.code, one.violations) for one in new] == [("COERCED", 2)]
    assert {(one.tool_version, one.code): one.new_since for one in kinds} == {
        ("9", "WRONG_TYPE"): None,
        ("10", "WRONG_TYPE"): None,
        ("10", "COERCED"): "10",
        ("11", "COERCED"): "10",
    }
    assert [one.new_since for one in narrowed] == ["10"]


def test_bounds_are_increasing_in_every_time_zone() -> None:
    for zone in ZONES:
        of = TimeRange(NOW - timedelta(days=3), NOW, zone)
        assert all(start < end for start, end in pairwise(of.bounds))
