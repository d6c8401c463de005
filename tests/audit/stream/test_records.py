"""Records: each entry gives one in each format, which is proved; a changed one is not."""

import copy
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from tooltrail.ledger import FormatError

from audit.ledger.actions import enter_all_actions
from audit.ledger.baseline import enter_baseline
from audit.sql.run import run
from audit.stream.place import rfc3339
from audit.stream.records import FORMATS
from tests.support.erasures import erase
from tests.support.factories import Cast, make_call, make_decision, send_events
from tests.support.ledger_log import as_owner, sign
from tests.support.streams import (
    assert_valid,
    documents,
    keys_of,
    make_records,
    verdict_of,
)

SECRET = "hunter2 on the moon"
GAP = {
    "type": "gap",
    "producer_id": "p1",
    "from_seq": 3,
    "to_seq": 5,
    "reason": "disk_full",
    "count": 3,
}
VIOLATION = {
    "path": "$.celsius",
    "code": "MISSING_REQUIRED",
    "expected": "number",
    "received": SECRET,
}


def fill(cast: Cast) -> None:
    """Events of every kind; each has the secret wherever a payload can be."""
    failed = {"status": "error", "error": {"type": "TOOL_ERROR", "code": "E1", "message": SECRET}}
    context = {"agent": "planner", "model": "m1", "provider": "p", "user": "ada", "service": "s"}
    send_events(
        cast.tenant,
        [
            *make_call(args={"city": SECRET}, run_id="run-1", case_id="case-1"),
            *make_call(is_error=True, output=failed, tool_version="2"),
            *make_call(
                guard={"strategy": "strict", "outcome": "failed", "violations": [VIOLATION]}
            ),
            *make_call(call_id='é\u2028\u0001"\\ \U0001f600', context=context, tool_call_id="t1"),
            make_decision("denied", reason=SECRET, by={"kind": "person", "name": "Bob"}),
            GAP,
        ],
    )


@pytest.fixture
def filled(acme: Cast) -> Cast:
    """A tenant with events of every kind, an erased one, and actions; all are signed."""
    fill(acme)
    send_events(acme.tenant, make_call(case_id="gone", args={"city": SECRET}))
    enter_all_actions(acme.tenant.id)
    enter_baseline(acme.tenant.id, datetime.now(UTC))
    erase(acme, "case:gone")
    enter_all_actions(acme.tenant.id)
    sign(acme.tenant)
    return acme


def _all(cast: Cast, form: str, **options: bool) -> list[dict[str, Any]]:
    return [
        *documents(make_records(cast, "calls", form, **options)),
        *documents(make_records(cast, "actions", form, **options)),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("has_payloads", [False, True])
def test_each_entry_gives_a_valid_record_that_is_proved(
    filled: Cast, form: str, has_payloads: bool
) -> None:
    keys = keys_of(filled)
    sign(filled.tenant)
    records = _all(filled, form, has_payloads=has_payloads)
    kinds = {one["tooltrail"]["kind"] for one in records}
    assert kinds >= {"start", "end", "decision", "gap", "action", "erasure", "unknown", "baseline"}
    for one in records:
        assert_valid(form, one)
        verdict = verdict_of(one, keys)
        assert verdict.is_genuine and not verdict.is_undecided, verdict.lines()
        has_raw = has_payloads and one["tooltrail"]["kind"] != "unknown"
        assert ("payload" in verdict.checks) == has_raw
    assert sorted(one["tooltrail"]["index"] for one in records) == list(range(len(records)))
    erased = [one for one in records if one["tooltrail"]["state"] == "erased"]
    assert len(erased) == 2


@pytest.mark.parametrize("form", FORMATS)
def test_without_payloads_nothing_leaves_that_a_viewer_may_not_see(filled: Cast, form: str) -> None:
    texts = json.dumps(_all(filled, form))
    assert SECRET not in texts
    assert "raw_data" not in texts and "original" not in texts and '"salt"' not in texts
    assert json.dumps(_all(filled, form, has_payloads=True)).count(SECRET) >= 5


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of each plain value in a document."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield from places(member, (*path, name))
    elif isinstance(value, list):
        for at, member in enumerate(value):
            yield from places(member, (*path, at))
    else:
        yield path


def changed(record: dict[str, Any], path: tuple[Any, ...]) -> dict[str, Any]:
    """The record with another value at a place."""
    other = copy.deepcopy(record)
    holder: Any = other
    for name in path[:-1]:
        holder = holder[name]
    value = holder[path[-1]]
    if isinstance(value, int):
        holder[path[-1]] = value + 1
    else:  # the first character, as others may be bits that base64 ignores
        holder[path[-1]] = ("B" if value[:1] == "A" else "A") + value[1:]
    return other


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
def test_a_record_with_any_value_changed_is_not_genuine(filled: Cast, form: str) -> None:
    keys = keys_of(filled)
    for one in _all(filled, form, has_payloads=True)[:40:3]:
        for path in places(one):
            try:
                verdict = verdict_of(changed(one, path), keys)
            except FormatError:
                continue  # it is no record any more
            assert not verdict.is_genuine, path
        for name in one:
            less = {other: value for other, value in one.items() if other != name}
            if name != "tooltrail":
                assert not verdict_of(less, keys).is_genuine, name
        assert not verdict_of({**one, "more": 1}, keys).is_genuine


def test_a_record_of_a_store_that_writes_whole_numbers_as_fractions_is_genuine(
    filled: Cast,
) -> None:
    one = _all(filled, "ocsf")[0]
    other = {**one, "time": float(one["time"]), "class_uid": 6003.0}
    assert verdict_of(other, keys_of(filled)).is_genuine


def test_events_that_somebody_altered_are_sent_as_altered(acme: Cast) -> None:
    fill(acme)
    sign(acme.tenant)
    as_owner(
        "UPDATE batch SET payload = set_byte(payload, octet_length(payload) - 9, 7)"
        " WHERE tenant_id = %s AND NOT is_own",
        [acme.tenant.id],
    )
    keys = keys_of(acme)
    records = documents(make_records(acme, "calls"))
    assert {one["tooltrail"]["state"] for one in records} == {"altered"}
    for one in records:
        assert_valid("ocsf", one)
        assert one["severity_id"] == 4
        assert verdict_of(one, keys).is_genuine, "its leaf is in the ledger all the same"


@pytest.mark.slow
def test_altered_tiles_give_no_proof_and_stop_nothing(acme: Cast) -> None:
    send_events(acme.tenant, [event for _ in range(200) for event in make_call()])
    sign(acme.tenant)
    as_owner(
        "UPDATE ledger_tile SET hashes = set_byte(hashes, 100, get_byte(hashes, 100) # 1)"
        " WHERE tenant_id = %s AND level = 0 AND tile_index = 0",
        [acme.tenant.id],
    )
    records = documents(make_records(acme, "calls"))
    assert len(records) == 400
    keys = keys_of(acme)
    proved = [verdict_of(one, keys) for one in records]
    assert all(one.is_genuine for one in proved)
    assert sum(one.is_undecided for one in proved) >= 256


@pytest.mark.slow
def test_full_tiles_and_the_last_one_are_proved(acme: Cast) -> None:
    send_events(acme.tenant, [event for _ in range(300) for event in make_call()])
    send_events(acme.tenant, [event for _ in range(333) for event in make_call()])
    sign(acme.tenant)
    keys = keys_of(acme)
    for begin in (0, 255, 256, 700, 1200):
        for one in documents(make_records(acme, "calls", begin=begin))[:20]:
            verdict = verdict_of(one, keys)
            assert verdict.is_genuine and not verdict.is_undecided, verdict.lines()


@pytest.mark.slow
def test_the_tiles_of_a_page_are_read_at_once(acme: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    send_events(acme.tenant, [event for _ in range(300) for event in make_call()])
    sign(acme.tenant)
    statements: list[str] = []

    def counted(name: str, **parameters: Any) -> list[Any]:
        statements.append(name)
        return run(name, **parameters)

    monkeypatch.setattr("audit.ledger.tree.run", counted)
    records = documents(make_records(acme, "calls"))
    assert len(records) == 600 and all("proof" in one["tooltrail"] for one in records)
    assert statements == ["tiles"]


def test_without_proofs_a_record_names_the_checkpoint(filled: Cast) -> None:
    one = _all(filled, "ecs", has_proofs=False)[0]
    assert_valid("ecs", one)
    assert one["tooltrail"]["checkpoint"].keys() == {"size", "root"}
    verdict = verdict_of(one, keys_of(filled))
    assert verdict.is_genuine and verdict.is_undecided


@pytest.mark.parametrize("us", [-(2**63), -1, 0, 1_800_000_000_123_456, 2**63])
def test_any_time_can_be_written(us: int) -> None:
    assert datetime.fromisoformat(rfc3339(us)).tzinfo is UTC
    assert len(rfc3339(us)) == 27
