"""Starts, runs and cancels replays, in the worker.

A replay is a job in slices (`tenants.slices`). A step reads the next calls and their events, a few
batches of the log at a time, validates them, and writes the cursor, the counts and the findings.

The row has its own copy of the draft's schemas: later edits need another replay. The guard's limits
for schemas bound the time for one event. If one event still takes more than `EVENT_SECONDS`, the
replay fails.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache, partial
from typing import Any, overload
from uuid import UUID

from django.utils import timezone

from audit.events.judgement import Judge, UnusableSchemaError
from audit.log.payload import read_events
from audit.models import Replay
from audit.queries.cursor import stored_cursor
from audit.queries.replays import ReplayedCall, ReplayRange
from audit.work.call_walk import places, raw_of, together
from audit.work.regression import judge_set
from audit.work.replay.tally import Tally
from tenants import slices
from tenants.models import new_id
from tenants.scope import current_tenant_id, tenant_scope
from tenants.slices import SLICE_SECONDS, UNDER_WAY, JobState, delete_older, end_jobs, end_older
from tools_registry.models import Tool, ToolVersion

CALLS_MAX = 100_000
KEPT = 20
"""Replays kept per tool, of drafts and of other definitions each."""
CHUNK = 2_000
"""Calls read at once."""
EVENT_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Proposal:
    """The schemas to replay: those of a draft as they are now, or of a definition elsewhere."""

    revision: int
    """Of the draft; 0: of a definition that the registry does not have."""
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None


def start_replay(
    tool: Tool, proposal: Proposal, calls: ReplayRange, limit: int, user_name: str
) -> Replay:
    """Record a replay for the worker. The caller defers the task. Needs the scope.

    A running replay of the tool's draft is cancelled by another one. Those of other definitions run
    beside each other: several branches of a repository may be checked at once. Raises
    UnusableSchemaError.
    """
    base_number = tool.current_number or None
    texts = _text(proposal.input_schema), _text(proposal.output_schema)
    _judges(*_base_texts(tool.id, base_number), *texts)
    tenant_id = current_tenant_id()
    replays = Replay.objects.for_tenant(tenant_id).filter(tool_id=tool.id)
    now = timezone.now()
    if proposal.revision:
        end_older(replays.exclude(draft_revision=0), KEPT, now)
    else:
        delete_older(replays.filter(draft_revision=0), KEPT)
    return Replay.objects.create(
        tenant_id=tenant_id,
        id=new_id(),
        tool_id=tool.id,
        tool_name=tool.name,
        created_at=now,
        created_by=user_name,
        draft_revision=proposal.revision,
        base_number=base_number,
        input_schema=texts[0],
        output_schema=texts[1],
        since=calls.since,
        until=calls.until,
        call_limit=limit,
        state=JobState.WAITING,
        read_count=0,
        newly_violating_count=0,
        findings="",
        problem="",
    )


def cancel_replay(tool_id: UUID, pk: UUID, now: datetime) -> bool:
    """Ask the worker to stop. Results so far stay. False if there is nothing to stop."""
    replays = Replay.objects.for_tenant(current_tenant_id())
    return end_jobs(replays.filter(tool_id=tool_id, id=pk), JobState.CANCELLED, now)


def is_of(replay: Replay, tool: Tool, proposal: Proposal) -> bool:
    """Whether a replay still applies: draft and current version have not changed since."""
    return (
        replay.base_number == (tool.current_number or None)
        and replay.input_schema == _text(proposal.input_schema)
        and replay.output_schema == _text(proposal.output_schema)
    )


def run_slice(tenant_id: UUID, pk: UUID, *, seconds: float = SLICE_SECONDS) -> bool:
    """Continue a replay for about `seconds`. True if there is more to do.

    Raises LogPayloadError.
    """
    return slices.run_slice(partial(_run_chunk, tenant_id, pk), seconds)


def fail_replay(tenant_id: UUID, pk: UUID, problem: str) -> None:
    """Record that a replay failed, and why. Results so far stay."""
    with tenant_scope(tenant_id):
        replays = Replay.objects.for_tenant(tenant_id).filter(id=pk)
        end_jobs(replays, JobState.FAILED, timezone.now(), problem=problem)


def judges_of(replay: Replay) -> tuple[Judge, Judge]:
    """The judges of outputs and of arguments for a replay. Raises UnusableSchemaError."""
    base = _base_texts(replay.tool_id, replay.base_number)
    return _judges(*base, replay.input_schema, replay.output_schema)


def _run_chunk(tenant_id: UUID, pk: UUID, deadline: float) -> bool:
    """Run one chunk in one transaction. False when the replay has ended."""
    with tenant_scope(tenant_id):
        replay = Replay.objects.for_tenant(tenant_id).filter(id=pk).select_for_update().first()
        if replay is None or replay.state not in UNDER_WAY:
            return False
        calls = ReplayRange(replay.tool_name, replay.since, replay.until)
        if replay.call_count is None:
            replay.call_count = calls.count(replay.call_limit)
        cursor = stored_cursor(replay.cursor_at, replay.cursor_id)
        size = min(CHUNK, replay.call_limit - replay.read_count)
        chunk = calls.before(cursor, size) if size else []
        try:
            read = _judge(replay, chunk, deadline)
        except UnusableSchemaError as error:
            read, replay.problem = 0, str(error)
        if read:
            last = chunk[read - 1]
            replay.cursor_at, replay.cursor_id = last.started_at, last.invocation_id
        replay.read_count += read
        replay.state = JobState.RUNNING
        if replay.problem:
            replay.state = JobState.FAILED
        elif read == len(chunk) < CHUNK or replay.read_count >= replay.call_limit:
            replay.state = JobState.DONE
            _judge_regressions(replay)
        if replay.state != JobState.RUNNING:
            replay.finished_at = timezone.now()
        replay.save()
        return replay.state == JobState.RUNNING


def _judge(replay: Replay, calls: Sequence[ReplayedCall], deadline: float) -> int:
    """Judge calls until the deadline, at least a few. Returns how many. Sets `replay.findings`."""
    outputs, args = judges_of(replay)
    tally = Tally.load(replay.findings)
    read = 0
    for some in together(calls):
        events = read_events(replay.tenant_id, [place for call in some for place in places(call)])
        for call in some:
            began_at = time.perf_counter()
            verdict = outputs.judge(raw_of(events.get(call.end)))
            tally.add("output", verdict, call.started_on, call.invocation_id)
            if call.start is None:
                tally.add("args", "nothing", call.started_on, call.invocation_id)
            else:
                verdict = args.judge(raw_of(events.get(call.start)))
                tally.add("args", verdict, call.started_on, call.invocation_id)
            read += 1
            seconds = time.perf_counter() - began_at
            if seconds > EVENT_SECONDS:
                replay.problem = (
                    f"Validating call {call.invocation_id} took {seconds:.1f} s: the schemas are"
                    " too expensive for values as large as these."
                )
                break
        if replay.problem or time.monotonic() >= deadline:
            break
    replay.findings = tally.dump()
    replay.newly_violating_count = sum(side.newly_violating for side in tally.sides.values())
    return read


def _judge_regressions(replay: Replay) -> None:
    """Judge the tool's regression set, at the end. Sets `replay.findings`."""
    tally = Tally.load(replay.findings)
    tally.regression = judge_set(replay.tool_id, *judges_of(replay))
    replay.findings = tally.dump()


def _base_texts(tool_id: UUID, number: int | None) -> tuple[str | None, str | None]:
    """Input and output schema of the base version; (None, None) if there is none."""
    if number is None:
        return None, None
    versions = ToolVersion.objects.filter(tenant_id=current_tenant_id(), tool_id=tool_id)
    base = versions.get(number=number)
    return _text(base.input_schema), _text(base.output_schema)


@overload
def _text(schema: Mapping[str, Any]) -> str: ...
@overload
def _text(schema: Mapping[str, Any] | None) -> str | None: ...
def _text(schema: Mapping[str, Any] | None) -> str | None:
    return None if schema is None else json.dumps(schema)


@lru_cache(maxsize=8)
def _judges(*schemas: str | None) -> tuple[Judge, Judge]:
    """Judges for the given schemas: input and output of the current version, then of the draft."""
    now_input, now_output, then_input, then_output = (
        None if text is None else json.loads(text) for text in schemas
    )
    return Judge("output", now_output, then_output), Judge("args", now_input, then_input)
