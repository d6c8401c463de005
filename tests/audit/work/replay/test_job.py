"""Replays in the worker: figures, resuming after a kill, cancelling, and rejected ones."""

import json
import random
from collections import Counter
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connections
from procrastinate.contrib.django.models import ProcrastinateJob
from tooltrail.guard import validate

from audit.events.judgement import UnusableSchemaError
from audit.models import Replay
from audit.queries.replays import ReplayRange
from audit.tasks.requested import replay_calls
from audit.work import call_walk
from audit.work.replay import job
from audit.work.replay.tally import SideTally, Tally
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, send_events
from tests.support.replays import (
    ARGS,
    LOOSE,
    NOW,
    STRICT,
    publish_contract,
    read_replay,
    run_replay,
    send_outputs,
)
from tools_registry.models import Tool


def start(
    cast: Cast,
    tool: Tool,
    output: Any = STRICT,
    args: Any = ARGS,
    *,
    limit: int = 100,
    hours: int = 24,
) -> UUID:
    with tenant_scope(cast.tenant.id):
        calls = ReplayRange(tool.name, NOW - timedelta(hours=hours), NOW)
        return job.start_replay(tool, job.Proposal(1, args, output), calls, limit, "Ada").id


def sides(cast: Cast, pk: UUID) -> tuple[SideTally, SideTally]:
    by_member = Tally.load(read_replay(cast, pk).findings).sides
    return by_member["output"], by_member["args"]


def some_output(rng: random.Random) -> dict[str, Any]:
    output: dict[str, Any] = {}
    if rng.random() < 0.8:
        output["celsius"] = rng.choice([1, 2.5, "warm", None])
    if rng.random() < 0.6:
        output["sky"] = rng.choice(["clear", "grey", "rain", 7])
    if rng.random() < 0.5:
        output["hours"] = [rng.choice([{"at": 1}, {}, 3]) for _ in range(rng.randrange(4))]
    if rng.random() < 0.2:
        output["wind"] = 3
    return output


@pytest.mark.slow
def test_figures_equal_an_independent_recount(acme: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "CHUNK", 37)
    monkeypatch.setattr(call_walk, "BATCHES_AT_ONCE", 2)
    rng = random.Random(3)
    tool = publish_contract(acme)
    outputs = [some_output(rng) for _ in range(300)]
    for first in range(0, 300, 50):
        send_outputs(acme, outputs[first : first + 50])
    another = make_call(started_at=NOW - timedelta(minutes=2), tool_name="another")
    send_events(acme.tenant, another)
    pk = start(acme, tool, limit=1000)
    run_replay(acme, pk)
    replay, (side, _) = read_replay(acme, pk), sides(acme, pk)
    assert (replay.state, replay.read_count, replay.call_count) == ("done", 300, 300)

    changes: Counter[str] = Counter()
    by_kind: dict[tuple[str, str], Counter[str]] = {}
    for output in outputs:
        now, then = (
            {
                ("$.hours[*]" + each.path[10:] if "[" in each.path else each.path, each.code)
                for each in validate(output, schema).violations
            }
            for schema in (LOOSE, STRICT)
        )
        changes[f"{not now} to {not then}"] += 1
        for kind in now | then:
            which = "still" if kind in now & then else "new" if kind in then else "gone"
            by_kind.setdefault(kind, Counter())[which] += 1
    assert {
        "True to True": side.passing,
        "True to False": side.newly_violating,
        "False to True": side.newly_passing,
        "False to False": side.still_violating,
    } == changes
    assert min(changes.values()) > 3, "each of the four results occurs"
    assert {
        (kind.path, kind.code): Counter(new=kind.new, gone=kind.gone, still=kind.still)
        for kind in side.kinds
    } == by_kind
    assert replay.newly_violating_count == changes["True to False"]


def test_arguments_are_replayed_against_the_input_schema(acme: Cast) -> None:
    tool = publish_contract(acme)
    send_outputs(acme, [{}] * 3, args={"city": "London"})
    send_outputs(acme, [{}] * 2, args={"town": "Bath"})
    pk = start(acme, tool, LOOSE, ARGS | {"required": ["city"]})
    run_replay(acme, pk)
    outputs, args = sides(acme, pk)
    assert (outputs.passing, args.passing, args.newly_violating) == (5, 3, 2)
    (kind,) = args.kinds
    assert (kind.path, kind.code, kind.new) == ("$.city", "MISSING_REQUIRED", 2)
    assert len(kind.samples["new"]) == 2


def test_known_violations_are_counted_as_cured_or_remaining(acme: Cast) -> None:
    tool = publish_contract(acme)
    violation = {"path": "$.sky", "code": "ENUM_MISMATCH", "expected": "", "received": ""}
    for sky in ("rain", "snow"):
        guard = {"strategy": "throw", "outcome": "failed", "violations": [violation]}
        received = {"celsius": 1, "sky": sky}
        at = NOW - timedelta(minutes=1)
        events = make_call(started_at=at, output=None, guard=guard | {"received": received})
        send_events(acme.tenant, events)
    pk = start(acme, tool)
    run_replay(acme, pk)
    side, _ = sides(acme, pk)
    assert (side.known, side.cured, side.newly_passing, side.still_violating) == (2, 1, 1, 1)
    (kind,) = side.kinds
    assert (kind.known, kind.cured, kind.gone, kind.still) == (2, 1, 1, 1)


def test_only_the_newest_calls_of_the_range_are_read(acme: Cast) -> None:
    tool = publish_contract(acme)
    send_outputs(acme, [{"celsius": 1}] * 10 + [{}] * 10)
    old = make_call(started_at=NOW - timedelta(hours=30), output={"status": "ok", "data": {}})
    send_events(acme.tenant, old)
    send_events(acme.tenant, make_call(started_at=NOW - timedelta(minutes=2), is_open=True))
    for limit, hours, expected in ((10, 24, (10, 0)), (100, 24, (10, 10)), (100, 48, (10, 11))):
        pk = start(acme, tool, limit=limit, hours=hours)
        run_replay(acme, pk)
        side, _ = sides(acme, pk)
        assert (side.passing, side.newly_violating) == expected
        assert read_replay(acme, pk).call_count == sum(expected)


def test_replay_resumes_between_two_chunks(acme: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "CHUNK", 7)
    tool = publish_contract(acme)
    send_outputs(acme, [{"celsius": 1}] * 30)
    pk = start(acme, tool)
    counts = []
    while job.run_slice(acme.tenant.id, pk, seconds=0):
        counts.append(read_replay(acme, pk).read_count)
    assert counts == [7, 14, 21, 28]
    assert sides(acme, pk)[0].passing == 30


def test_kill_within_a_chunk_changes_nothing(acme: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "CHUNK", 7)
    tool = publish_contract(acme)
    send_outputs(acme, [{"celsius": 1}] * 10)
    pk = start(acme, tool)
    assert job.run_slice(acme.tenant.id, pk, seconds=0)
    before = (read_replay(acme, pk).read_count, read_replay(acme, pk).findings)

    def die(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as dying:
        dying.setattr(Replay, "save", die)
        with pytest.raises(KeyboardInterrupt):
            job.run_slice(acme.tenant.id, pk)
    assert (read_replay(acme, pk).read_count, read_replay(acme, pk).findings) == before
    run_replay(acme, pk)
    assert sides(acme, pk)[0].passing == 10


def test_slice_ends_within_a_chunk_at_its_time_limit(
    acme: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_walk, "BATCHES_AT_ONCE", 1)
    tool = publish_contract(acme)
    for _ in range(3):
        send_outputs(acme, [{"celsius": 1}] * 4)
    pk = start(acme, tool)
    counts = []
    while job.run_slice(acme.tenant.id, pk, seconds=0):
        counts.append(read_replay(acme, pk).read_count)
    assert counts[0] < 12
    assert (read_replay(acme, pk).state, read_replay(acme, pk).read_count) == ("done", 12)


def test_task_defers_itself_until_the_replay_is_done(
    acme: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "CHUNK", 7)
    monkeypatch.setattr(job.run_slice, "__kwdefaults__", {"seconds": 0.0})
    tool = publish_contract(acme)
    send_outputs(acme, [{"celsius": 1}] * 10)
    pk = start(acme, tool)
    ids = {"tenant_id": str(acme.tenant.id), "replay_id": str(pk)}
    replay_calls(**ids)
    assert read_replay(acme, pk).state == "running"
    assert ProcrastinateJob.objects.filter(args__replay_id=str(pk)).count() == 1
    replay_calls(**ids)
    assert read_replay(acme, pk).state == "done"


def test_replay_can_be_cancelled_and_is_replaced_by_a_new_one(
    acme: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "CHUNK", 7)
    tool = publish_contract(acme)
    send_outputs(acme, [{"celsius": 1}] * 20)
    pk = start(acme, tool)
    job.run_slice(acme.tenant.id, pk, seconds=0)
    with tenant_scope(acme.tenant.id):
        assert job.cancel_replay(tool.id, pk, NOW)
        assert not job.cancel_replay(tool.id, pk, NOW)
    assert not job.run_slice(acme.tenant.id, pk)
    assert (read_replay(acme, pk).state, read_replay(acme, pk).read_count) == ("cancelled", 7)
    first, second = start(acme, tool), start(acme, tool)
    assert (read_replay(acme, first).state, read_replay(acme, second).state) == (
        "cancelled",
        "waiting",
    )


def test_only_the_newest_replays_of_a_tool_are_kept(
    acme: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "KEPT", 3)
    tool = publish_contract(acme)
    started = [start(acme, tool) for _ in range(5)]
    with tenant_scope(acme.tenant.id):
        kept = Replay.objects.for_tenant(acme.tenant.id).filter(tool_id=tool.id)
        assert set(kept.values_list("id", flat=True)) == set(started[2:])


def test_erased_payloads_are_counted(acme: Cast) -> None:
    tool = publish_contract(acme)
    send_outputs(acme, [{"celsius": 1}] * 3)
    with connections["owner"].cursor() as cursor:
        cursor.execute("UPDATE batch SET payload = NULL WHERE tenant_id = %s", [acme.tenant.id])
    pk = start(acme, tool)
    run_replay(acme, pk)
    outputs, args = sides(acme, pk)
    assert (outputs.judged, outputs.skipped, args.skipped) == (0, {"erased": 3}, {"erased": 3})


def test_damaged_log_fails_the_replay_with_a_reason(acme: Cast) -> None:
    tool = publish_contract(acme)
    send_outputs(acme, [{"celsius": 1}])
    with connections["owner"].cursor() as cursor:
        cursor.execute("UPDATE batch SET payload = 'x' WHERE tenant_id = %s", [acme.tenant.id])
    pk = start(acme, tool)
    replay_calls(tenant_id=str(acme.tenant.id), replay_id=str(pk))
    assert read_replay(acme, pk).state == "failed"
    assert "cannot be decompressed" in read_replay(acme, pk).problem


def test_too_slow_schema_fails_the_replay(acme: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "EVENT_SECONDS", 0.0)
    tool = publish_contract(acme)
    send_outputs(acme, [{"celsius": 1}] * 3)
    pk = start(acme, tool)
    run_replay(acme, pk)
    assert (read_replay(acme, pk).state, read_replay(acme, pk).read_count) == ("failed", 1)
    assert "the schemas are too expensive" in read_replay(acme, pk).problem


def test_unusable_schema_is_rejected(acme: Cast) -> None:
    tool = publish_contract(acme)
    for schema in ({"$ref": "https://example.com"}, {"pattern": "(?!a)"}, {"$ref": "#"}):
        with pytest.raises(UnusableSchemaError, match="The draft's output schema cannot"):
            start(acme, tool, schema)
    with tenant_scope(acme.tenant.id):
        assert not Replay.objects.for_tenant(acme.tenant.id).exists()


def test_replay_belongs_to_its_draft_and_current_version(acme: Cast) -> None:
    tool = publish_contract(acme)
    pk = start(acme, tool)
    proposal = job.Proposal(2, ARGS, STRICT)
    assert job.is_of(read_replay(acme, pk), tool, proposal)
    assert not job.is_of(read_replay(acme, pk), tool, job.Proposal(2, ARGS, LOOSE))
    assert not job.is_of(
        read_replay(acme, pk), tool, job.Proposal(2, ARGS | {"title": "x"}, STRICT)
    )
    tool = publish_contract(acme, description="Another.")
    assert not job.is_of(read_replay(acme, pk), tool, proposal)


def test_tool_without_a_version_is_replayed_only_against_the_draft(acme: Cast) -> None:
    with tenant_scope(acme.tenant.id):
        tool = Tool.objects.create(tenant=acme.tenant, name="get_weather")
    send_outputs(acme, [{}, {"celsius": 1}])
    pk = start(acme, tool)
    run_replay(acme, pk)
    side, _ = sides(acme, pk)
    assert (side.newly_violating, side.passing) == (1, 1)
    assert json.loads(read_replay(acme, pk).input_schema) == ARGS


def test_replay_of_another_tenant_is_not_run(acme: Cast, globex: Cast) -> None:
    pk = start(acme, publish_contract(acme))
    assert not job.run_slice(globex.tenant.id, pk)
    assert read_replay(acme, pk).state == "waiting"
