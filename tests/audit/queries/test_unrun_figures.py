"""Figures with calls that did not run equal those counted from the log's events."""

import json
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import batched
from typing import Any, get_args
from uuid import uuid4

import pytest
from django.test import Client
from django.utils.http import urlencode
from tooltrail.events import Decision

from audit.log.payload import unpack
from audit.models import Batch
from audit.queries.latency import ToolFilter, latency
from audit.queries.over_time import over_time, started_calls
from audit.queries.summary import summary
from audit.queries.time_range import TimeRange
from audit.queries.unrun import unrun_calls
from audit.queries.violation_samples import samples
from audit.queries.violations import ViolationFilter, violations
from audit.reports.figures import gather
from tenants.keys import create_key
from tenants.models import Scope, Tenant
from tenants.scope import tenant_scope
from tests.support.factories import make_call, make_decision, make_tenant, send_events
from tests.support.time_zones import NOW

DECISIONS = get_args(Decision)
WRONG = [
    ("$.items[2].n", "WRONG_TYPE"),
    ("$.items[0].n", "WRONG_TYPE"),
    ("$.unit", "ENUM_MISMATCH"),
]
HOURS = [0.3, 24, 47, 30 * 24 + 0.21]


@dataclass
class Log:
    """A tenant, its starts by call, and its decisions by call, as read from the log."""

    tenant: Tenant
    starts: dict[str, dict[str, Any]] = field(default_factory=dict)
    decisions: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    ends: set[str] = field(default_factory=set)


def _instant(event: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(event.get("decided_at") or event["started_at"])


@pytest.fixture(scope="module")
def log() -> Log:
    """About 300 calls of a month, in random order: with decisions, with a start, or with both."""
    rng = random.Random(11)
    tenant = make_tenant("unrun")
    events: list[dict[str, Any]] = []
    for _ in range(300):
        at = NOW - timedelta(seconds=rng.uniform(0, 33 * 86_400) ** rng.choice([0.7, 1]) + 2)
        call: dict[str, Any] = {
            "invocation_id": str(uuid4()),
            "trace_id": f"trace-{rng.randrange(40)}",
            "tool_name": rng.choice(["search", "fetch"]),
            "tool_version": rng.choice(["1", "2"]),
        }
        for step in range(rng.choice([0, 1, 1, 2, 3])):
            decision = rng.choice(DECISIONS)
            wrong = rng.sample(WRONG, rng.randrange(1, 3)) if decision == DECISIONS[0] else []
            events.append(
                make_decision(
                    decision,
                    decided_at=at + timedelta(milliseconds=step),
                    violations=[{"path": path, "code": code} for path, code in wrong],
                    **call,
                )
            )
        if rng.random() < 0.5:
            events += make_call(
                started_at=at + timedelta(seconds=1), is_open=rng.random() < 0.2, **call
            )
    rng.shuffle(events)
    for some in batched(events, 200):
        assert send_events(tenant, some)["rejected"] == []
    read = Log(tenant)
    with tenant_scope(tenant.id):
        for batch in Batch.objects.for_tenant(tenant.id):
            assert batch.payload is not None
            for _, raw in unpack(bytes(batch.payload)):
                event = json.loads(raw)
                if event["type"] == "toolExecutionStart":
                    read.starts[event["invocation_id"]] = event
                elif event["type"] == "toolExecutionEnd":
                    read.ends.add(event["invocation_id"])
                elif event["type"] == "toolCallDecision":
                    read.decisions.setdefault(event["invocation_id"], []).append(event)
    return read


@pytest.mark.parametrize("hours", HOURS)
def test_violations_of_arguments_equal_a_recount_of_the_log(log: Log, hours: float) -> None:
    of = TimeRange(NOW - timedelta(hours=hours), NOW - timedelta(seconds=1), UTC)

    def is_within(event: dict[str, Any]) -> bool:
        return of.start <= _instant(event) < of.end

    expected: dict[tuple[str, ...], list[tuple[datetime, str]]] = {}
    requested: dict[tuple[str, str], set[str]] = {}
    rejected: dict[tuple[str, str], set[str]] = {}
    everything = [*log.starts.values(), *(one for each in log.decisions.values() for one in each)]
    for event in filter(is_within, everything):
        version = (event["tool_name"], event["tool_version"])
        requested.setdefault(version, set()).add(event["invocation_id"])
        for one in event.get("violations", ()):
            rejected.setdefault(version, set()).add(event["invocation_id"])
            pattern = "$.items[*].n" if "items" in one["path"] else one["path"]
            key = (*version, pattern, one["code"])
            expected.setdefault(key, []).append((_instant(event), event["invocation_id"]))
    with tenant_scope(log.tenant.id):
        report = violations(of, ViolationFilter(side="arguments"))
        both = violations(of, ViolationFilter())
        single = samples(of, ViolationFilter(), limit=10_000)
    assert {
        (one.tool_name, one.tool_version, one.path_pattern, one.code): (
            *(one.violations, one.calls, one.of_calls, one.first_at, one.last_at),
            sum(value or 0 for value in one.course),
        )
        for one in report.kinds
    } == {
        key: (
            *(len(seen), len({call for _, call in seen}), len(requested[key[0], key[1]])),
            *(min(seen)[0], max(seen)[0], len(seen)),
        )
        for key, seen in expected.items()
    }
    assert {
        (one.tool_name, one.tool_version): (one.calls, one.of_calls) for one in report.rejected
    } == {key: (len(calls), len(requested[key])) for key, calls in rejected.items()}
    assert both.kinds == report.kinds, "the results have none"
    total = sum(map(len, expected.values()))
    assert report.by_side == ({"arguments": total} if total else {})
    assert [one.started_at for one in single] == sorted(
        (at for seen in expected.values() for at, _ in seen), reverse=True
    )


def _recounted_unrun(log: Log, of: TimeRange) -> dict[str, dict[str, int]]:
    """Calls without a start, by tool and latest decision, if that was made in the range."""
    counts: dict[str, dict[str, int]] = {}
    for call, decisions in log.decisions.items():
        last = max(decisions, key=_instant)
        if call not in log.starts and of.start <= _instant(last) < of.end:
            of_tool = counts.setdefault(last["tool_name"], {})
            of_tool[last["decision"]] = of_tool.get(last["decision"], 0) + 1
    return counts


@pytest.mark.parametrize("hours", HOURS)
def test_calls_that_did_not_run_equal_a_recount_of_the_log(log: Log, hours: float) -> None:
    of = TimeRange(NOW - timedelta(hours=hours), NOW - timedelta(seconds=1), UTC)
    expected = _recounted_unrun(log, of)
    starts = [one for one in log.starts.values() if of.start <= _instant(one) < of.end]
    ended = sum(one["invocation_id"] in log.ends for one in starts)
    with tenant_scope(log.tenant.id):
        series = over_time(of)
        unrun = unrun_calls(of.start, of.end, started_calls(series))
        shown = summary(of.start, of.end)
        spent = latency(of, ToolFilter())
    assert {name: one.by_decision for name, one in unrun.tools.items()} == expected
    for name, one in unrun.tools.items():
        assert one.started == sum(start["tool_name"] == name for start in starts)
    total = unrun.total
    not_run = sum(sum(each.values()) for each in expected.values())
    assert total.refused + total.awaiting + total.approved == total.calls == not_run
    assert total.asked_for == len(starts) + not_run
    if total.asked_for:
        assert total.refusal_rate == total.refused / total.asked_for
    # No figure of calls has them.
    assert (shown.calls, shown.open, shown.errors) == (ended, len(starts) - ended, 0)
    assert sum(shown.latency) == spent.total.calls == ended
    assert (series.total.calls, series.total.open) == (shown.calls, shown.open)


@pytest.mark.slow
def test_overview_report_and_api_say_the_same(log: Log) -> None:
    of = TimeRange(NOW - timedelta(days=20), NOW - timedelta(seconds=1), UTC)
    expected = _recounted_unrun(log, of)
    key = create_key(log.tenant, "reader", [Scope.READ])[1]
    at = urlencode({"from": of.start.isoformat(), "to": of.end.isoformat()})
    answer = (
        Client().get(f"/api/v1/summary?{at}", headers={"authorization": f"Bearer {key}"}).json()
    )
    with tenant_scope(log.tenant.id):
        report = gather(of, NOW)["unrun"]
    names = ("asked_for", "refused", "refusal_rate", "awaiting", "approved")
    assert {name: answer[name] for name in names} == {name: report[name] for name in names}
    allowed = ("awaiting", "approved")
    for state in allowed:
        assert answer[state] == sum(each.get(state, 0) for each in expected.values())
    refused = [n for each in expected.values() for name, n in each.items() if name not in allowed]
    assert answer["refused"] == sum(refused)
    assert answer["asked_for"] == answer["started"] + sum(answer[n] for n in ("refused", *allowed))
    assert {one["tool_name"] for one in report["tools"]} == expected.keys()
