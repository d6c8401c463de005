"""Counts everything again from `invocation` and the log, to compare with stored counts.

Works on one tenant inside its scope; `assert_consistent` is the invariant of ingest.
"""

import json
import uuid
from collections.abc import Mapping
from typing import Any

from django.db import connection
from tooltrail.ledger import NO_INVOCATION, Entry, Kind, commit_of, leaf_of

from audit.events.instants import microseconds
from audit.index import histogram
from audit.index.reindex import reindex
from audit.log.payload import unpack
from audit.models import Batch, Gap, RejectedEvent
from tenants.models import Tenant
from tenants.scope import tenant_scope

_HOUR = "date_trunc('hour', started_at)"
_QUARTER = "date_bin('15 minutes', started_at, timestamptz '2000-01-01 00:00+00')"
_COMPLETED = "count(*) FILTER (WHERE state IN ('ok', 'failed'))"
_COMPLETED_HITS = "count(*) FILTER (WHERE cache_hit AND state <> 'cancelled')"


def _sum(column: str) -> str:
    return f"coalesce(sum({column}) FILTER (WHERE state <> 'cancelled'), 0)::bigint"


_RECOUNTS = {
    "trace": """
        SELECT started_on, trace_id, min(started_at),
               max(greatest(started_at, coalesce(ended_at, started_at))),
               (array_agg(tool_name ORDER BY started_at, tool_name COLLATE "C"))[1],
               (array_agg(run_id ORDER BY started_at, run_id COLLATE "C")
                   FILTER (WHERE run_id IS NOT NULL))[1],
               min(started_at) FILTER (WHERE run_id IS NOT NULL), count(state),
               count(*) FILTER (WHERE state IN ('ok', 'failed')),
               count(*) FILTER (WHERE state = 'failed'), sum(violation_count)::bigint,
               coalesce(sum(prompt_tokens) FILTER (WHERE state <> 'cancelled'), 0)::bigint,
               coalesce(sum(completion_tokens) FILTER (WHERE state <> 'cancelled'), 0)::bigint,
               count(*) FILTER (WHERE state IS NULL), count(*) FILTER (WHERE state = 'cancelled')
        FROM (
            SELECT started_on, trace_id, started_at, ended_at, tool_name, run_id, end_batch_id,
                   state, violation_count, prompt_tokens, completion_tokens
            FROM invocation WHERE tenant_id = %(tenant_id)s
            UNION ALL
            SELECT started_on, trace_id, decided_at, NULL, tool_name, run_id, NULL, NULL, 0, 0, 0
            FROM decision WHERE tenant_id = %(tenant_id)s
        ) AS both_kinds GROUP BY 1, 2
    """,
    "rollup": f"""
        SELECT started_on, {_HOUR}, tool_name, tool_version, count(*), {_COMPLETED},
               count(*) FILTER (WHERE state = 'failed'),
               count(*) FILTER (WHERE violation_count > 0), sum(violation_count)::bigint,
               {_sum("duration_us")}, {_sum("prompt_tokens")},
               {_sum("completion_tokens")}, {_COMPLETED_HITS}
        FROM invocation WHERE tenant_id = %(tenant_id)s GROUP BY 1, 2, 3, 4
    """,
    "quarter_rollup": f"""
        SELECT started_on, {_QUARTER}, tool_name, tool_version, count(*), {_COMPLETED},
               count(*) FILTER (WHERE state = 'failed'),
               count(*) FILTER (WHERE violation_count > 0), sum(violation_count)::bigint,
               {_sum("prompt_tokens")}, {_sum("completion_tokens")}, {_COMPLETED_HITS}
        FROM invocation WHERE tenant_id = %(tenant_id)s GROUP BY 1, 2, 3, 4
    """,
    "error_rollup": f"""
        SELECT started_on, {_HOUR}, tool_name, tool_version, error_type, count(*)
        FROM invocation WHERE tenant_id = %(tenant_id)s AND state = 'failed'
        GROUP BY 1, 2, 3, 4, 5
    """,
    "violation_day": """
        SELECT started_on, tool_name, tool_version, path_pattern, code, strategy, outcome,
               count(*), count(DISTINCT invocation_id), min(started_at), max(started_at)
        FROM violation WHERE tenant_id = %(tenant_id)s GROUP BY 1, 2, 3, 4, 5, 6, 7
    """,
}
_KEPT = {
    "trace": """
        SELECT started_on, trace_id, first_started_at, last_at, first_tool_name, run_id, run_at,
               started_count, completed_count, failed_count, violation_count, prompt_tokens,
               completion_tokens, decision_count, cancelled_count
        FROM trace WHERE tenant_id = %(tenant_id)s
    """,
    "rollup": """
        SELECT started_on, hour_at, tool_name, tool_version, started_count, completed_count,
               failed_count, violating_call_count, violation_count, duration_us, prompt_tokens,
               completion_tokens, cache_hit_count
        FROM rollup WHERE tenant_id = %(tenant_id)s AND started_count <> 0
    """,
    "quarter_rollup": """
        SELECT started_on, quarter_at, tool_name, tool_version, started_count, completed_count,
               failed_count, violating_call_count, violation_count, prompt_tokens,
               completion_tokens, cache_hit_count
        FROM quarter_rollup WHERE tenant_id = %(tenant_id)s AND started_count <> 0
    """,
    "error_rollup": """
        SELECT started_on, hour_at, tool_name, tool_version, error_type, call_count
        FROM error_rollup WHERE tenant_id = %(tenant_id)s AND call_count <> 0
    """,
    "violation_day": """
        SELECT started_on, tool_name, tool_version, path_pattern, code, strategy, outcome,
               violation_count, call_count, first_at, last_at
        FROM violation_day WHERE tenant_id = %(tenant_id)s
    """,
}
_STRAY_VIOLATIONS = """
    SELECT v.invocation_id, v.ordinal FROM violation v
    LEFT JOIN invocation i ON i.tenant_id = v.tenant_id AND i.started_on = v.started_on
        AND i.invocation_id = v.invocation_id
    WHERE v.tenant_id = %(tenant_id)s AND (
        i.started_at, i.tool_name, i.tool_version, i.guard_strategy, i.guard_outcome
    ) IS DISTINCT FROM (
        v.started_at, v.tool_name, v.tool_version,
        CASE v.found_by WHEN 'executor' THEN v.strategy END,
        CASE v.found_by WHEN 'executor' THEN v.outcome END
    )
"""
_SLOTS = """
    SELECT invocation_id, 'toolExecutionStart', start_batch_id, start_pos FROM invocation
    WHERE tenant_id = %(tenant_id)s AND start_batch_id IS NOT NULL
    UNION ALL
    SELECT invocation_id, 'toolExecutionEnd', end_batch_id, end_pos FROM invocation
    WHERE tenant_id = %(tenant_id)s AND end_batch_id IS NOT NULL
    UNION ALL
    SELECT invocation_id, 'toolCallDecision', batch_id, pos FROM decision
    WHERE tenant_id = %(tenant_id)s
"""
_GO_ON = ("waiting", "working")
_KINDS = {"toolExecutionStart": Kind.START, "toolExecutionEnd": Kind.END, "gap": Kind.GAP}
_KINDS |= {"finding": Kind.FINDING, "toolCallDecision": Kind.DECISION}
_KINDS["definition"] = Kind.DEFINITION

type _Place = tuple[uuid.UUID, int]


def assert_all_taken_in(tenant: Tenant) -> None:
    """Fail unless sums, log and index agree, and no event was rejected."""
    with tenant_scope(tenant.id):
        assert not RejectedEvent.objects.for_tenant(tenant.id).exists()
    assert_consistent(tenant)
    report = reindex(tenant.id, repair=False, progress=lambda done, size: None)
    assert report.is_clean, report.comparison.examples


def assert_consistent(tenant: Tenant) -> None:
    """Fail unless trace, rollups, violation, ledger and log agree with the calls."""
    with tenant_scope(tenant.id):
        for table, recount in _RECOUNTS.items():
            assert _rows(tenant, _KEPT[table]) == _rows(tenant, recount), table
        for table, start in (("rollup", _HOUR), ("quarter_rollup", _QUARTER)):
            assert _latencies(tenant, table) == _recounted_latencies(tenant, start), table
        assert _rows(
            tenant,
            "SELECT started_on, invocation_id, count(*)::integer FROM violation"
            " WHERE tenant_id = %(tenant_id)s GROUP BY 1, 2",
        ) == _rows(
            tenant,
            "SELECT started_on, invocation_id, violation_count FROM invocation"
            " WHERE tenant_id = %(tenant_id)s AND violation_count > 0",
        )
        assert _rows(tenant, _STRAY_VIOLATIONS) == []
        log = _whole_log(tenant)
        _assert_slots_hold_their_events(tenant, log)
        assert _rows(
            tenant,
            "SELECT producer_id, first_seq, last_seq, event_count FROM producer"
            " WHERE tenant_id = %(tenant_id)s",
        ) == _recounted_producers(tenant, log)


def _rows(tenant: Tenant, statement: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, {"tenant_id": tenant.id})
        return sorted(cursor.fetchall(), key=repr)


def _latencies(tenant: Tenant, table: str) -> list[tuple[Any, ...]]:
    start = "hour_at" if table == "rollup" else "quarter_at"
    kept = _rows(
        tenant,
        f"SELECT started_on, {start}, tool_name, tool_version, histogram::text"
        f" FROM {table} WHERE tenant_id = %(tenant_id)s AND histogram <> 0",
    )
    return sorted(((*key, histogram.from_number(number)) for *key, number in kept), key=repr)


def _recounted_latencies(tenant: Tenant, start: str) -> list[tuple[Any, ...]]:
    calls = _rows(
        tenant,
        f"SELECT started_on, {start}, tool_name, tool_version, array_agg(duration_us)"
        " FROM invocation WHERE tenant_id = %(tenant_id)s AND state IN ('ok', 'failed')"
        " GROUP BY 1, 2, 3, 4",
    )
    counted = [(*key, histogram.histogram(durations)) for *key, durations in calls]
    return sorted(counted, key=repr)


def _whole_log(tenant: Tenant) -> dict[_Place, dict[str, Any]]:
    """Every event of the log by batch and position.

    Indexes must be contiguous from 0, and each leaf must follow from the stored bytes.
    """
    log: dict[_Place, dict[str, Any]] = {}
    batches = Batch.objects.for_tenant(tenant.id).order_by("first_index", "event_count")
    for batch in batches:
        assert batch.first_index == len(log)
        assert batch.payload is not None
        stored = unpack(bytes(batch.payload))
        leaves = bytes(batch.leaves)
        assert len(stored) * 32 == batch.event_count * 32 == len(leaves)
        for position, (salt, raw) in enumerate(stored):
            event = log[batch.batch_id, position] = json.loads(raw)
            if "event_id" not in event:
                continue  # the server made one, of the line's number: test_ingest.py
            if "invocation_id" not in event and event["type"] == "toolCallDecision":
                continue  # likewise, of the provider's id
            leaf = leaf_for(
                _KINDS[event["type"]],
                event["event_id"],
                event.get("invocation_id"),
                microseconds(batch.received_at),
                salt,
                raw,
            )
            assert leaves[position * 32 : (position + 1) * 32] == leaf
    assert _rows(tenant, "SELECT size FROM ledger_head WHERE tenant_id = %(tenant_id)s") == (
        [(len(log),)] if batches else []
    )
    return log


def _assert_slots_hold_their_events(
    tenant: Tenant, log: Mapping[_Place, Mapping[str, Any]]
) -> None:
    """What a call says of where its events lie is true, and no event serves two calls."""
    slots = _rows(tenant, _SLOTS)
    assert len({(batch_id, position) for _, _, batch_id, position in slots}) == len(slots)
    for invocation_id, kind, batch_id, position in slots:
        event = log[batch_id, position]
        assert event["type"] == kind
        assert event.get("invocation_id", str(invocation_id)) == str(invocation_id)


def _recounted_producers(
    tenant: Tenant, log: Mapping[_Place, Mapping[str, Any]]
) -> list[tuple[Any, ...]]:
    """Each producer's numbering, from the events that hold a slot and the gaps it owned up to."""
    numbers: dict[str, list[int]] = {}
    counts: dict[str, int] = {}
    slots = [log[batch_id, position] for _, _, batch_id, position in _rows(tenant, _SLOTS)]
    # A call has one place for interim events; all of them are its.
    interims = {each["event_id"]: each for each in log.values() if each.get("call_state") in _GO_ON}
    for event in (*slots, *interims.values()):
        if (producer := event.get("producer_id")) is None:
            continue
        seq = event.get("producer_seq")
        numbers.setdefault(producer, []).extend([] if seq is None else [seq])
        counts[producer] = counts.get(producer, 0) + (seq is not None)
    for gap in Gap.objects.for_tenant(tenant.id):
        numbers.setdefault(gap.producer_id, []).extend((gap.from_seq, gap.to_seq))
    recounted = [
        (producer, min(heard, default=None), max(heard, default=None), counts.get(producer, 0))
        for producer, heard in numbers.items()
    ]
    return sorted(recounted, key=repr)


def leaf_for(
    kind: Kind,
    event_id: str,
    invocation_id: str | None,
    received_us: int,
    salt: bytes,
    raw: bytes,
) -> bytes:
    """The leaf an event should have, from what an auditor knows."""
    entry = Entry(
        kind,
        uuid.UUID(event_id),
        NO_INVOCATION if invocation_id is None else uuid.UUID(invocation_id),
        received_us,
        len(raw),
        commit_of(salt, raw),
    )
    return leaf_of(entry.to_bytes())
