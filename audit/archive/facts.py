"""The facts of archived calls as Parquet: only what no erasure clears. Needs pyarrow."""

import io
from collections.abc import Collection
from datetime import date, timedelta
from uuid import UUID

from audit.index.partitions import DAYS_BACK
from audit.sql import arrays
from audit.sql.run import Row, run

COLUMNS = (
    *("invocation_id", "started_at", "ended_at", "duration_us", "state", "tool_name"),
    *("tool_version", "trace_id", "parent_invocation_id", "error_type", "error_code"),
    *("upstream_status", "attempt", "violation_count", "prompt_tokens", "completion_tokens"),
    *("environment", "service", "agent", "agent_version", "model", "provider"),
)
"""The columns of the statement `archive_facts`, in its order."""
_INTEGERS = frozenset(
    (
        *("duration_us", "upstream_status", "attempt", "violation_count"),
        *("prompt_tokens", "completion_tokens"),
    )
)
_INSTANTS = frozenset(("started_at", "ended_at"))
_EARLY, _LATE = timedelta(days=DAYS_BACK + 1), timedelta(days=2)
"""How long before its arrival, and after it, a call may have started by its own clock."""
_IDS = 20_000


def facts_of(invocation_ids: Collection[UUID], day: date, last_day: date) -> list[Row]:
    """The facts of calls whose events were received between two days. Needs the tenant's scope."""
    facts: list[Row] = []
    ids = sorted(invocation_ids)
    for at in range(0, len(ids), _IDS):
        facts += run(
            "archive_facts",
            first_day=day - _EARLY,
            last_day=last_day + _LATE,
            invocation_ids=arrays.uuids(ids[at : at + _IDS]),
        )
    return facts


def parquet_of(facts: Collection[Row]) -> bytes | None:
    """The file; None if pyarrow is not installed."""
    try:
        import pyarrow
        from pyarrow.parquet import write_table
    except ImportError:
        return None
    fields = []
    for name in COLUMNS:
        if name in _INTEGERS:
            fields.append((name, pyarrow.int64()))
        elif name in _INSTANTS:
            fields.append((name, pyarrow.timestamp("us", tz="UTC")))
        else:
            fields.append((name, pyarrow.string()))
    schema = pyarrow.schema(fields)
    documents = [
        {
            name: str(value) if isinstance(value, UUID) else value
            for name, value in zip(COLUMNS, row, strict=True)
        }
        for row in facts
    ]
    sink = io.BytesIO()
    write_table(pyarrow.Table.from_pylist(documents, schema=schema), sink, compression="zstd")
    return sink.getvalue()
