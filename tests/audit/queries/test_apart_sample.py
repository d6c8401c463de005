"""How the calls of a selection and of the rest are read."""

import random
from datetime import UTC, datetime, timedelta
from itertools import batched

import pytest

from audit.queries import apart
from audit.queries.apart import Compared, read_compared
from audit.queries.call_filter import CallFilter, Text
from audit.queries.call_query import parse
from audit.queries.properties import PROPERTIES, TIME, free_properties
from audit.queries.time_range import TimeRange
from tenants.models import Tenant
from tenants.scope import tenant_scope
from tests.support.factories import make_call, make_tenant, send_events

NOW = datetime.now(UTC)
OF = TimeRange(NOW - timedelta(days=1), NOW, UTC)
CALLS = 1_200
FAILED = {"status": "error", "error": {"type": "UPSTREAM", "code": "E1", "message": "no"}}


@pytest.fixture(scope="module")
def tenant() -> Tenant:
    """Calls over a day, half of them in one hour; each 30th failed."""
    tenant, rng = make_tenant("sample"), random.Random(3)
    calls = (
        make_call(
            started_at=NOW
            - timedelta(hours=rng.uniform(5, 6) if number % 2 else rng.uniform(0.1, 23.9)),
            tool_name=rng.choice("ab"),
            trace_id=f"t{number}",
            is_error=number % 30 == 0,
            output=FAILED if number % 30 == 0 else {"status": "ok", "data": {}},
        )
        for number in range(CALLS)
    )
    for events in batched((event for call in calls for event in call), 600):
        send_events(tenant, events)
    return tenant


def _read(tenant: Tenant, query: str, tool: str | None = None) -> Compared:
    with tenant_scope(tenant.id):
        others = CallFilter(tool=Text(tool) if tool else None)
        return read_compared(parse(query).wanted, others, OF, NOW)


@pytest.mark.parametrize(
    ("query", "selected"),
    [
        ("state:failed", 40),
        ("NOT state:failed", CALLS - 40),
        ("trace:t7", 1),
        ("since:12h", None),
        ("duration:>1s", 0),
        ("code:E1 error:UPSTREAM", 40),
    ],
)
def test_few_calls_are_all_read(tenant: Tenant, query: str, selected: int | None) -> None:
    read = _read(tenant, query)
    assert len(read.is_selected) == CALLS
    assert read.selection_is_whole
    assert read.rest_share >= 1
    assert read.population == CALLS
    if selected is not None:
        assert sum(read.is_selected) == selected
    ids = read.values["trace"]
    assert len(set(ids)) == CALLS, "a call was read twice"


def test_the_rest_is_of_one_tool(tenant: Tenant) -> None:
    read = _read(tenant, "tool:a state:failed", "a")
    assert set(read.values["tool"]) == {"a"}
    assert read.population == len(read.is_selected)


def test_of_many_calls_an_even_part_is_read(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apart, "CALLS", 400)
    read = _read(tenant, "duration:>1ms")
    assert not read.selection_is_whole
    assert 300 <= len(read.is_selected) <= 400
    busy = [OF.parts[int(place or 0)][0] for place in read.values["time"]]
    first, last = NOW - timedelta(hours=7), NOW - timedelta(hours=5)
    share = sum(first <= at <= last for at in busy) / len(busy)
    assert 0.4 < share < 0.65, "the busy hour has half of the calls and of the sample"


def test_a_rare_selection_is_read_in_full_beside_a_part_of_the_rest(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apart, "CALLS", 600)
    read = _read(tenant, "state:failed")
    assert sum(read.is_selected) == 40
    assert read.selection_is_whole
    assert read.rest_share < 1
    assert len(read.is_selected) <= 600


def test_every_property_has_a_column_and_a_query(tenant: Tenant) -> None:
    read = _read(tenant, "state:failed")
    assert list(read.values) == [each.name for each in (*PROPERTIES, TIME)]
    for property in PROPERTIES:
        values = {value for value in property.of(list(read.values[property.name])) if value}
        for value in [*values, *(["x"] if property.term is None else [])]:
            if property.name in ("state", "cache") and value == "x":
                continue
            assert parse(property.term_of(value)).problems == (), (property.name, value)


def test_a_query_leaves_only_properties_that_it_does_not_name() -> None:
    def names(query: str) -> set[str]:
        return {each.name for each in free_properties(parse(query).wanted, has_own_time=False)}

    everything = {each.name for each in (*PROPERTIES, TIME)}
    assert names("") == everything
    assert everything - names("tool:a (agent:b OR NOT version:1)") == {"tool", "agent", "version"}
    assert everything - names("code:E1") == {"state", "error", "code", "upstream"}
    assert everything - names('"reset"') == {"tool", "state", "error", "code"}
    assert everything - names("is:retry") == {"attempt", "state", "duration"}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("tool:a", "tool:b"),
        ("tool:a*", "NOT tool:b"),
        ("state:failed", "tool:a"),
        ("since:12h", ""),
        ("since:24h until:6h tool:a", "since:12h"),
        ("code:E1", "state:failed"),
    ],
)
def test_a_call_of_two_queries_is_one_of_the_first(tenant: Tenant, first: str, second: str) -> None:
    def found(query: str) -> set[str | None]:
        with tenant_scope(tenant.id):
            read = read_compared(parse(query).wanted, CallFilter(), OF, NOW)
        pairs = zip(read.values["trace"], read.is_selected, strict=True)
        return {trace for trace, is_selected in pairs if is_selected}

    with tenant_scope(tenant.id):
        read = read_compared(parse(first).wanted, parse(second).wanted, OF, NOW)
    sides: dict[bool, list[str | None]] = {True: [], False: []}
    for trace, is_selected in zip(read.values["trace"], read.is_selected, strict=True):
        sides[is_selected].append(trace)
    assert sorted(map(str, sides[True])) == sorted(map(str, found(first)))
    rest = found(second) - found(first) if second else set(read.values["trace"]) - found(first)
    assert sorted(map(str, sides[False])) == sorted(map(str, rest))
