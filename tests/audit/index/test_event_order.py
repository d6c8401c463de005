"""The same events give the same index, in any order and with any repeats.

The same events are sent to several tenants, each time in another order and other batches, some of
them twice. Positions in the log differ; the rows of the index must not.
"""

import random

import pytest

from tests.support.call_histories import some_call, some_long_call
from tests.support.factories import make_tenant
from tests.support.index_contents import index_contents
from tests.support.random_requests import random_requests, record_request
from tests.support.recount import assert_consistent

CALLS = 6
LONG_CALLS = 3  # one goes on, one ends, one is cancelled
PARTS = 10  # each with calls of its own
SHORT, FULL = 30, 1_000  # orders of a part
RECOUNT_EVERY = 10


@pytest.mark.generated(1)
@pytest.mark.parametrize(
    "part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, PARTS))]
)
def test_any_order_of_the_same_events_produces_the_same_index(
    part: int, pytestconfig: pytest.Config
) -> None:
    rng = random.Random(f"{pytestconfig.getoption('randomly_seed', 0)} {part}")
    calls = [some_call(rng, number) for number in range(CALLS)]
    while {len(call) for call in calls} != {1, 2}:  # one at least never ends, and one does
        calls = [some_call(rng, number) for number in range(CALLS)]
    calls += [some_long_call(rng, number) for number in range(LONG_CALLS)]
    events = [event for call in calls for event in call]
    expected: dict[str, list[str]] | None = None
    for number in range(FULL if pytestconfig.getoption("full") else SHORT):
        tenant = make_tenant("permuted")
        seed = rng.getrandbits(32)
        answers = [
            record_request(tenant, each) for each in random_requests(random.Random(seed), events)
        ]
        assert sum(answer["accepted"] for answer in answers) == len(events), seed
        assert not any(answer["rejected"] for answer in answers), seed
        index = index_contents(tenant)
        expected = expected or index
        assert index == expected, seed
        if number % RECOUNT_EVERY == 0:
            assert_consistent(tenant)
    assert expected is not None
    assert all(expected[table] for table in ("invocation", "trace", "rollup"))
