"""Planted causes are found first, and nothing is found where there is no cause.

Through intake, index and query. Seeds are printed: those of causes as parameters, the others in the
assertion. `.ci/run` runs a sample of both.
"""

from datetime import UTC, datetime, timedelta
from itertools import batched
from typing import Any
from uuid import UUID

import pytest

from audit.apart.finding import find_apart
from audit.queries.call_query import parse
from audit.queries.time_range import TimeRange
from tenants.scope import tenant_scope
from tests.support import sampling
from tests.support.apart_histories import CAUSES, History, history
from tests.support.factories import make_tenant, send_events

CLAIMED_MAX = 1
"""Of 200 histories without a cause, in how many something may be named."""


def _stored(one: History) -> UUID:
    tenant = make_tenant("apart")
    for events in batched(one.events, 1_000):
        send_events(tenant, events)
    return tenant.id


@pytest.mark.slow
@pytest.mark.generated(3, kind="cause")
@pytest.mark.parametrize(
    ("seed", "cause"), [(seed, CAUSES[seed % len(CAUSES)]) for seed in range(50)]
)
def test_a_planted_cause_is_named_first(seed: int, cause: str) -> None:
    now = datetime.now(UTC)
    planted = history(seed, cause, now)
    with tenant_scope(_stored(planted)):
        of = TimeRange(now - timedelta(days=1), now, UTC)
        finding = find_apart(parse("state:failed"), of, now, beside_all=False)
    assert finding.named, seed
    assert frozenset(finding.named[0].difference.values) == planted.cause, seed


@pytest.mark.slow
def test_nothing_is_named_without_a_cause(pytestconfig: pytest.Config) -> None:
    """Neither of failures, which are single calls, nor of an agent, which has whole traces."""
    now = datetime.now(UTC)
    of = TimeRange(now - timedelta(days=1), now, UTC)
    claims: dict[str, dict[int, list[Any]]] = {"state:failed": {}, "agent:planner": {}}
    for seed in sampling.some(pytestconfig, "without a cause", range(200), 8):
        tenant_id = _stored(history(seed, None, now))
        for query, of_seeds in claims.items():
            with tenant_scope(tenant_id):
                finding = find_apart(parse(query), of, now, beside_all=False)
            if finding.named:
                of_seeds[seed] = [one.values for one in finding.verdict.differences]
    assert all(len(of_seeds) <= CLAIMED_MAX for of_seeds in claims.values()), claims
