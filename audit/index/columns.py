"""Calls as the columns of a statement: binary arrays, one for each column of the index.

`audit.index.writer` sends them. The calls must be in order of key.
"""

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from audit.events.candidates import Candidate
from audit.events.reported_context import ReportedContext
from audit.index.merge import Call
from audit.index.projection import SHARED, Ending, Peers, Row
from audit.sql import arrays

_ENCODERS: dict[str, Callable[[Sequence[Any]], arrays.PgArray]] = {
    **dict.fromkeys(SHARED, arrays.texts),
    "parent_invocation_id": arrays.uuids,
    "timeouts_ms": arrays.bigints,
    "budget_tokens": arrays.bigints,
    "ended_us": arrays.instants,
    "duration_us": arrays.bigints,
    "state": arrays.texts,
    "error_type": arrays.texts,
    "error_code": arrays.texts,
    "error_message": arrays.texts,
    "upstream_status": arrays.ints,
    "retry_after_ms": arrays.bigints,
    "attempt": arrays.ints,
    "guard_strategy": arrays.texts,
    "guard_outcome": arrays.texts,
    "violation_count": arrays.ints,
    "prompt_tokens": arrays.bigints,
    "completion_tokens": arrays.bigints,
    "cache_hit": arrays.booleans,
}


def key_columns(calls: Sequence[Call]) -> dict[str, Any]:
    """The columns that name the calls' rows."""
    return {
        "invocation_ids": arrays.uuids([call.invocation_id for call in calls]),
        "days": arrays.days([call.day for call in calls]),
    }


def _batch_id(candidate: Candidate | None) -> UUID | None:
    return None if candidate is None else candidate.batch_id


def _position(candidate: Candidate | None) -> int | None:
    return None if candidate is None else candidate.position


def call_columns(rows: Sequence[Row]) -> dict[str, Any]:
    """The columns of the calls' rows."""
    calls = [row.call for row in rows]
    columns: dict[str, Any] = {
        "started_on": arrays.days([call.day for call in calls]),
        "invocation_id": arrays.uuids([call.invocation_id for call in calls]),
        "started_at": arrays.instants([call.started_us for call in calls]),
        "start_batch_id": arrays.uuids([_batch_id(call.start) for call in calls]),
        "start_pos": arrays.ints([_position(call.start) for call in calls]),
        "end_batch_id": arrays.uuids([_batch_id(call.end) for call in calls]),
        "end_pos": arrays.ints([_position(call.end) for call in calls]),
        "pair_conflict": arrays.booleans([row.pair_conflict for row in rows]),
    }
    for name, values in zip(SHARED, zip(*(row.shared for row in rows), strict=True), strict=True):
        columns[name] = _ENCODERS[name](values)
    peers = zip(*(row.peers for row in rows), strict=True)
    for name, values in zip(Peers._fields, peers, strict=True):
        columns[name] = arrays.texts(values)
    contexts = zip(*(row.context for row in rows), strict=True)
    for name, values in zip(ReportedContext._fields, contexts, strict=True):
        columns[name] = arrays.texts(values)
    endings = zip(*(row.ending for row in rows), strict=True)
    for name, values in zip(Ending._fields, endings, strict=True):
        columns["ended_at" if name == "ended_us" else name] = _ENCODERS[name](values)
    return columns
