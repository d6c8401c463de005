"""Whatever the order and however often: the same events leave the same index.

Pairs that agree are sent to a tenant each time in another order, cut into other requests and
partly twice. What lies where in the log differs, what the index says of the calls must not.
"""

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from audit.events.batch_ids import choose_batch_id
from audit.events.body import split_lines
from audit.intake.ingest import record_batch
from tenants.models import Tenant
from tenants.scope import tenant_scope
from tests.support.call_histories import Event, some_call
from tests.support.event_requests import lines, new_batch_id
from tests.support.factories import make_tenant
from tests.support.recount import assert_consistent

CALLS = 6
SHORT, FULL = 300, 10_000
RECOUNT_EVERY = 50

_PLACES = {"tenant_id", "start_batch_id", "start_pos", "end_batch_id", "end_pos"}
_HEARD = {"tenant_id", "last_heard_at"}
_TABLES = {
    "invocation": _PLACES,
    "violation": {"tenant_id"},
    "violation_day": {"tenant_id"},
    "trace": {"tenant_id"},
    "quarter_rollup": {"tenant_id"},
    "rollup": {"tenant_id"},
    "error_rollup": {"tenant_id"},
    "producer": _HEARD,
}


def index_of(tenant: Tenant) -> dict[str, list[str]]:
    """All rows of the index but for where and when they came."""
    index = {}
    with tenant_scope(tenant.id), connection.cursor() as cursor:
        for table, left_out in _TABLES.items():
            cursor.execute(
                f"SELECT (to_jsonb(t) - %s::text[])::text FROM {table} t WHERE tenant_id = %s",
                [sorted(left_out), tenant.id],
            )
            index[table] = sorted(row for (row,) in cursor.fetchall())
    return index


def requests_of(rng: random.Random, events: list[Event]) -> Iterator[list[Event]]:
    """Each event once at least, some twice, in any order, in one to four requests."""
    some = rng.sample(events, rng.randrange(len(events)))
    shuffled = rng.sample(events + some, len(events) + len(some))
    cuts = sorted(rng.sample(range(1, len(shuffled)), rng.randrange(4)))
    for start, end in zip([0, *cuts], [*cuts, len(shuffled)], strict=True):
        yield shuffled[start:end]


def send(tenant: Tenant, events: list[Event]) -> dict[str, Any]:
    body = lines(events)
    now = timezone.now()
    batch_id = choose_batch_id(new_batch_id(), now)
    answer: dict[str, Any] = json.loads(
        record_batch(tenant.id, body, split_lines(body), batch_id, now)
    )
    return answer


def test_every_order_of_the_same_events_leaves_the_same_index(pytestconfig: pytest.Config) -> None:
    rng = random.Random()
    calls = [some_call(rng, number) for number in range(CALLS)]
    while {len(call) for call in calls} != {1, 2}:  # one at least never ends, and one does
        calls = [some_call(rng, number) for number in range(CALLS)]
    events = [event for call in calls for event in call]
    expected: dict[str, list[str]] | None = None
    for number in range(FULL if pytestconfig.getoption("full") else SHORT):
        tenant = make_tenant("permuted")
        seed = rng.getrandbits(32)
        answers = [send(tenant, each) for each in requests_of(random.Random(seed), events)]
        assert sum(answer["accepted"] for answer in answers) == len(events), seed
        assert not any(answer["rejected"] for answer in answers), seed
        index = index_of(tenant)
        expected = expected or index
        assert index == expected, seed
        if number % RECOUNT_EVERY == 0:
            assert_consistent(tenant)
    assert expected is not None
    assert all(expected[table] for table in ("invocation", "trace", "rollup"))
