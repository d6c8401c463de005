"""Random events of version 2 of the contract, right and wrong: nothing is lost, figures are right.

Decisions, states of calls, definitions and MCP peers arrive in any order, with repeats, in requests
of any size. What is expected is counted again from the events that were not rejected, by rules of
this file alone: from the text of docs/events.md.
"""

import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, get_args
from uuid import UUID

import pytest
from django.db import connections
from tooltrail.events import Decision

from audit.index.reindex import reindex
from audit.log.payload import unpack
from audit.models import Batch, RejectedEvent
from audit.queries.approvals import ApprovalFilter, approvals, figures
from audit.queries.call_list import count_calls
from audit.queries.call_query import ANYBODY, parse
from audit.queries.over_time import over_time, started_calls
from audit.queries.summary import summary
from audit.queries.time_range import TimeRange
from audit.queries.unrun import unrun_calls
from audit.queries.violations import ViolationFilter, violations
from tenants.models import Tenant
from tenants.scope import tenant_scope
from tests.support.event_requests import post
from tests.support.factories import (
    make_call,
    make_decision,
    make_definition,
    make_definitions,
    make_ingest_key,
    make_tenant,
)
from tests.support.random_requests import random_requests
from tests.support.recount import assert_consistent

type Event = dict[str, Any]

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("clear_principals")]

NOW = datetime.now(UTC)
RANGE = TimeRange(NOW - timedelta(hours=8), NOW + timedelta(hours=1), UTC)
ALLOWED = ("awaiting", "approved")
ODD: list[Any] = [
    *(None, True, False, 0, -1, 2**63, 1e308, "", "x" * 3000, "\x00", "\ud7ff\u202e", "odd"),
    *([], {}, [[]], {"kind": "robot"}, {"name": None}, {"name": ["x"]}, [{"name": "a"}]),
]
"""Values for any member."""
STATES = ("ok", "failed", "cancelled", "waiting", "working", "refused", "awaiting", "approved")


def odd(rng: random.Random, event: Event, *names: str) -> Event:
    """The event with one of these members replaced by anything, or without it."""
    name = rng.choice(names)
    if rng.random() < 0.2:
        return {each: value for each, value in event.items() if each != name}
    return event | {name: rng.choice(ODD)}


def some_events(rng: random.Random) -> Iterator[Event]:
    """Events of about a dozen calls, each with decisions, a start, interim events and an end."""
    for number in range(rng.randrange(8, 16)):
        at = NOW - timedelta(seconds=rng.randrange(600, 20_000), microseconds=number)
        ids: Event = {"trace_id": f"t{rng.randrange(3)}", "tool_name": rng.choice("ab")}
        ids["invocation_id"] = str(UUID(int=rng.getrandbits(128), version=4))
        if rng.random() < 0.4:
            ids["tool_call_id"] = f"toolu_{number}"
        of_provider = "tool_call_id" in ids and rng.random() < 0.5
        for step in range(rng.randrange(4)):
            event = make_decision(
                rng.choice(get_args(Decision)),
                decided_at=at - timedelta(seconds=5 - step),
                by=rng.choice([None, {"kind": "policy", "id": "p"}, {"kind": "person", "id": "u"}]),
                requested_by=rng.choice([None, "u", "v"]),
                violations=[{"path": "$.a[3]", "code": "WRONG_TYPE"}] * rng.randrange(3),
                **ids,
            )
            event = {name: value for name, value in event.items() if value is not None}
            if of_provider:
                del event["invocation_id"]
            yield event
            if rng.random() < 0.3:
                event["event_id"] = str(UUID(int=rng.getrandbits(128), version=4))
                yield odd(rng, event, "decision", "by", "violations", "decided_at", "requested_by")
        if rng.random() < 0.6:
            yield from some_call(rng, at, ids)
    for _ in range(rng.randrange(4)):
        tools = [make_definition(name=name, description=str(rng.randrange(3))) for name in "ab"]
        listed = make_definitions(
            *tools,
            server=rng.choice(("s1", "s2")),
            seen_at=NOW - timedelta(seconds=rng.randrange(9000)),
            client={"name": "c"},
        )
        yield listed
        yield odd(rng, listed, "seen_at", "server", "client", "tools", "type")


def some_call(rng: random.Random, at: datetime, ids: Event) -> Iterator[Event]:
    start, end = make_call(started_at=at, duration_ms=400_000, **ids)
    peers = {"server": {"name": "s1", "version": "1"}, "client": {"name": "c"}}
    start["mcp"] = rng.choice([peers, *ODD])
    if rng.random() < 0.9:
        yield start
    for step in rng.sample(range(300), rng.randrange(3)):
        yield end | {
            "event_id": str(UUID(int=rng.getrandbits(128), version=4)),
            "call_state": rng.choice(("waiting", "working")),
            "ended_at": (at + timedelta(seconds=step)).isoformat(),
            "output": rng.choice(ODD),
        }
    if rng.random() < 0.6:
        end["is_error"] = rng.random() < 0.3
        end["call_state"] = rng.choice(["cancelled", "cancelled", *ODD])
        end["output_type"] = rng.choice(["CallToolResult", *ODD])
        end["output"] = rng.choice([{"isError": True, "content": []}, end["output"], *ODD])
        yield end


@dataclass
class Expected:
    """What the stored events say, by call: its decisions, its reports, and whether it started."""

    decisions: dict[tuple[str, str], list[Event]] = field(default_factory=dict)
    reports: dict[str, list[Event]] = field(default_factory=dict)
    named: set[tuple[str, str]] = field(default_factory=set)
    """Trace and provider's id of the calls that ran."""

    def add(self, event: Event) -> None:
        if event["type"] == "toolCallDecision":
            named = event.get("invocation_id")
            key = (named, "") if named else (event["trace_id"], event["tool_call_id"])
            self.decisions.setdefault(key, []).append(event)
        else:
            self.reports.setdefault(event["invocation_id"], []).append(event)
            if "tool_call_id" in event:
                self.named.add((event["trace_id"], event["tool_call_id"]))

    def states(self) -> Counter[str]:
        """How many calls are in each state."""
        states = Counter(map(self._state, self.reports.values()))
        for decision in self.unrun():
            states[decision if decision in ALLOWED else "refused"] += 1
        return states

    def unrun(self) -> list[str]:
        """The latest decision of each call that did not run."""
        latest = []
        for (first, second), decided in self.decisions.items():
            ran = (first, second) in self.named if second else first in self.reports
            named = {(each["trace_id"], each.get("tool_call_id", "")) for each in decided}
            if not ran and not named & self.named:
                latest.append(max(decided, key=lambda each: each["decided_at"])["decision"])
        return latest

    def _state(self, events: list[Event]) -> str:
        reports = [each for each in events if each["type"] == "toolExecutionEnd"]
        ends = [each for each in reports if each.get("call_state") not in ("waiting", "working")]
        if ends:
            if ends[0].get("call_state") == "cancelled":
                return "cancelled"
            output = ends[0].get("output")
            of_mcp = ends[0].get("output_type") == "CallToolResult"
            is_error = of_mcp and isinstance(output, dict) and output.get("isError") is True
            return "failed" if ends[0]["is_error"] or is_error else "ok"
        if reports:
            state: str = max(reports, key=lambda each: each["ended_at"])["call_state"]
            return state
        return "open"

    def answered(self) -> Counter[str]:
        """Answers to requests, and requests without one, told apart by whether the call ran."""
        counted: Counter[str] = Counter()
        for (first, second), decided in self.decisions.items():
            waits = False
            requesters = {each.get("requested_by") for each in decided} - {None}
            for each in sorted(decided, key=lambda one: one["decided_at"]):
                of_person = (each.get("by") or {}).get("kind") == "person"
                is_approved = each["decision"] == "approved"
                if each["decision"] == "awaiting":
                    waits = True
                elif waits or (is_approved and of_person):
                    counted["approved" if is_approved else "refused"] += 1
                    counted["unasked"] += not waits
                    is_own = of_person and each["by"].get("id") in requesters
                    counted["self"] += is_approved and is_own
                    waits = False
            if waits:
                named = {(each["trace_id"], each.get("tool_call_id", "")) for each in decided}
                ran = (not second and first in self.reports) or bool(named & self.named)
                counted["ran" if ran else "awaiting"] += 1
        return +counted


def stored(tenant: Tenant) -> Expected:
    """What the log's events say, each event once, without those that wait in the inbox."""
    expected = Expected()
    with tenant_scope(tenant.id):
        inbox = {bytes(one.raw) for one in RejectedEvent.objects.for_tenant(tenant.id)}
        seen: set[bytes] = set()
        batches = Batch.objects.for_tenant(tenant.id).filter(is_own=False)
        for batch in batches.order_by("first_index"):
            for _, raw in unpack(bytes(batch.payload or b"")):
                if raw not in inbox | seen:
                    seen.add(raw)
                    expected.add(json.loads(raw))
    return expected


def check(tenant: Tenant, expected: Expected) -> None:
    """All figures are those that were counted again."""
    states, latest = expected.states(), expected.unrun()
    with tenant_scope(tenant.id):
        shown = {
            state: count_calls(parse(f"state:{state}", ANYBODY).wanted, now=NOW).count
            for state in STATES
        }
        of_range = summary(RANGE.start, RANGE.end)
        series = over_time(RANGE)
        unrun = unrun_calls(RANGE.start, RANGE.end, started_calls(series)).total
        actual = figures(approvals(RANGE, ApprovalFilter(), limit=1000))
        wrong = violations(RANGE, ViolationFilter(side="arguments")).total
    assert shown == {state: states[state] for state in STATES}
    open_calls = states["open"] + states["waiting"] + states["working"]
    assert (of_range.calls, of_range.errors, of_range.open, of_range.cancelled) == (
        *(states["ok"] + states["failed"], states["failed"], open_calls, states["cancelled"]),
    )
    assert sum(of_range.latency) == states["ok"] + states["failed"]
    assert unrun.by_decision == Counter(latest)
    assert unrun.started == len(expected.reports)
    assert {
        "approved": actual.total.approved,
        "refused": actual.total.refused,
        "unasked": actual.total.unasked,
        "self": actual.total.self_approved,
        "awaiting": actual.awaiting,
        "ran": actual.ran,
    } == {
        name: expected.answered()[name]
        for name in ("approved", "refused", "unasked", "self", "awaiting", "ran")
    }
    rejected = [
        len(each.get("violations", ()))
        for decided in expected.decisions.values()
        for each in decided
        if each["decision"] == "rejectedArguments"
    ]
    assert wrong == sum(rejected)


@pytest.mark.generated(3)
@pytest.mark.parametrize("seed", range(40))
def test_figures_equal_a_recount_and_nothing_is_lost(seed: int) -> None:
    rng = random.Random(seed)
    tenant = make_tenant("fuzz")
    key = make_ingest_key(tenant)
    sent: list[bytes] = []
    for request in random_requests(rng, list(some_events(rng))):
        rows = [json.dumps(event).encode() for event in request]
        answer = post(key, b"\n".join(rows) + b"\n")
        assert answer.status_code == 200, answer.content
        document = json.loads(answer.content)
        rejected = {each["line"] for each in document["rejected"]}
        assert document["accepted"] + document["duplicates"] + len(rejected) == len(rows)
        sent += rows
    with tenant_scope(tenant.id):
        kept = {bytes(one.raw) for one in RejectedEvent.objects.for_tenant(tenant.id)}
        batches = Batch.objects.for_tenant(tenant.id).filter(is_own=False)
        for batch in batches:
            kept |= {raw for _, raw in unpack(bytes(batch.payload or b""))}
    lost = [row for row in sent if row not in kept]
    assert all(json.loads(row)["type"] == "toolDefinitions" for row in lost)
    expected = stored(tenant)
    check(tenant, expected)
    assert_consistent(tenant)
    with connections["owner"].cursor() as cursor:  # what reindex is for
        cursor.execute("DELETE FROM decision WHERE tenant_id = %s", [tenant.id])
        cursor.execute(
            "UPDATE invocation SET state = 'cancelled' WHERE tenant_id = %s AND state = 'ok'",
            [tenant.id],
        )
    for repair in (True, False):
        report = reindex(tenant.id, repair=repair, progress=lambda done, size: None)
    assert report.is_clean, report.comparison.examples
    check(tenant, expected)
    assert_consistent(tenant)
