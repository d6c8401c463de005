"""A tenant with realistic calls, and reports made through the real pages."""

import random
from datetime import datetime, timedelta
from itertools import batched
from typing import Any
from uuid import UUID

from django.test import Client

from audit.reports.queries import Report, find_report
from tenants.scope import tenant_scope
from tests.support.factories import (
    Cast,
    make_call,
    make_ingest_key,
    send_events,
)
from tests.support.pages import signed_in

type Event = dict[str, Any]


def some_call(rng: random.Random, at: datetime) -> list[Event]:
    """Most succeed; some fail, break their schema, repeat themselves or never end."""
    chance = rng.random()
    tool = rng.choice(("search", "fetch", "roll_dice"))
    usage = {"prompt": rng.randrange(100), "completion": rng.randrange(20)}
    members: Event = {
        "output": {
            "status": "ok",
            "data": {},
            "meta": {"took_ms": 1, "cache_hit": chance < 0.2, "token_usage": usage},
        }
    }
    if chance > 0.9:
        error = {"type": rng.choice(("TIMEOUT", "UPSTREAM")), "message": "no"}
        members["output"] |= {"status": "error", "error": error}
    elif chance > 0.8:
        violations = [
            {"path": f"$.items[{n}].name", "code": "WRONG_TYPE", "expected": "a", "received": "b"}
            for n in range(rng.randrange(1, 4))
        ]
        members["guard"] = {"strategy": "warn", "outcome": "passed", "violations": violations}
    return make_call(
        started_at=at,
        duration_ms=rng.lognormvariate(4, 1),
        tool_name=tool,
        tool_version=rng.choice(("1", "2")),
        call_id=f"{tool}-{rng.randrange(6)}" if chance < 0.3 else f"{rng.getrandbits(60):x}",
        trace_id=f"t{rng.randrange(30)}",
        is_open=chance > 0.97,
        **members,
    )


def record(cast: Cast, start: datetime, end: datetime, calls: int, seed: int = 1) -> None:
    """Calls anywhere in a stretch of time, through the real endpoint."""
    rng = random.Random(seed)
    key = make_ingest_key(cast.tenant)
    events = []
    for number in range(calls):
        call = some_call(rng, start + (end - start) * rng.random())
        numbered = number + 2 * (number > calls // 2)  # two numbers never come
        events += [
            event | {"producer_id": "p", "producer_seq": 2 * numbered + n}
            for n, event in enumerate(call)
        ]
    for some in batched(events, 300):
        assert send_events(cast.tenant, some, key=key)["rejected"] == []


def make(client: Client, zone: str = "UTC", **params: str) -> UUID:
    """Make a report as a member does; its id."""
    client.cookies["timezone"] = zone
    answer = client.post("/reports/create", params)
    assert answer.status_code == 302, answer.content
    address = str(answer["Location"])
    assert address != "/reports/", list(client.get("/reports/").context["messages"])
    return UUID(address.rsplit("/", 1)[1])


def report_of(cast: Cast, zone: str = "UTC", **params: str) -> Report:
    """The same, read from the database."""
    return stored(cast, make(signed_in(cast.auditor), zone, **params))


def stored(cast: Cast, pk: UUID) -> Report:
    """A report as it is stored."""
    with tenant_scope(cast.tenant.id):
        report = find_report(pk)
    assert report is not None
    return report


def days_ago(now: datetime, days: int) -> str:
    """A day as a form has it."""
    return f"{now - timedelta(days=days):%Y-%m-%d}"
