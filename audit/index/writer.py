"""The statements that write the index: one statement per table in a transaction.

Whole columns are sent as binary arrays, in order of key so that writers cannot deadlock.
`audit.index.indexing` decides what to write.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from audit.events import wire
from audit.events.candidates import Candidate
from audit.events.instants import microseconds
from audit.index import histogram
from audit.index.columns import call_columns, key_columns
from audit.index.deltas import (
    BIGINT_MAX,
    Changed,
    Deltas,
    RollupDelta,
    RollupKey,
)
from audit.index.merge import Call, Key
from audit.index.projection import (
    SHARED,
    Row,
    project,
    violations,
)
from audit.sql import arrays
from audit.sql.run import Statements


class IndexWriter(Statements):
    """Writes the index for a tenant's batches with the same arrival time, in its open scope."""

    def find_near(self, calls: Sequence[Call]) -> dict[Key, tuple[int, int]]:
        """Day and start of each call's stored row, by key; on its day, or a day before or after."""
        near: dict[Key, tuple[int, int]] = {}
        missing = calls
        for away in (0, -1, 1):  # almost all rows are on the day of the call
            by_day: dict[int, list[UUID]] = {}
            for call in missing:
                by_day.setdefault(call.day + away, []).append(call.invocation_id)
            for day, invocation_ids in sorted(by_day.items()):
                for invocation_id, started_at in self.look_up(
                    "calls_on_day",
                    day=day,
                    invocation_ids=arrays.uuids(invocation_ids),
                ):
                    near[day - away, invocation_id.int] = day, microseconds(started_at)
            missing = [call for call in missing if call.key not in near]
        return near

    def upsert_calls(self, calls: Sequence[Call]) -> dict[Key, Changed]:
        """Write the calls, which are in order of key. Returns rows in which a slot was free."""
        if not calls:
            return {}
        rows = [project(call) for call in calls]
        sent = {row.call.key: row for row in rows}
        changed: dict[Key, Changed] = {}
        for day, invocation_id, start_batch_id, end_batch_id, *stored in self.run(
            "upsert_invocations", **call_columns(rows)
        ):
            key = day, invocation_id.int
            call = sent[key].call
            took_start = call.start is not None and call.start.batch_id == start_batch_id
            took_end = call.end is not None and call.end.batch_id == end_batch_id
            if stored[0] is None:
                changed[key] = _new(sent[key], took_start, took_end)
            else:
                changed[key] = changed_of(day, invocation_id, *stored, took_start, took_end, False)
        return changed

    def insert_calls(self, calls: Sequence[Call]) -> dict[Key, Changed]:
        """Write calls that are not stored yet, which are in order of key. Returns their rows.

        Costs a fifth less than `upsert_calls` and does not wait for a result. If a call is stored
        after all, a later statement with a result or the commit raises django.db.IntegrityError.
        """
        if not calls:
            return {}
        rows = [project(call) for call in calls]
        self.send("insert_invocations", **call_columns(rows))
        return {
            row.call.key: _new(row, row.call.start is not None, row.call.end is not None)
            for row in rows
        }

    def supersede_calls(self, calls: Sequence[Call]) -> tuple[list[Changed], list[Changed]]:
        """Replace calls by a fuller account. Each has both its events.

        Returns the rows before and the rows after.
        """
        if not calls:
            return [], []
        before = [changed_of(*row) for row in self.run("calls_as_they_are", **key_columns(calls))]
        rows = [project(call) for call in calls]
        after = [changed_of(*row) for row in self.run("supersede_calls", **call_columns(rows))]
        return before, after

    def withdraw_calls(self, calls: Sequence[Call]) -> list[Changed]:
        """Remove calls that are now part of another call. Returns the removed rows.

        `write_violations` removes their violations. Calls with violations that an executor
        reported stay.
        """
        if not calls:
            return []
        keys = key_columns(calls)
        self.send("mark_absorbed_calls", **keys)
        return [changed_of(*row) for row in self.run("withdraw_calls", **keys)]

    def settle_traces(self, withdrawn: Sequence[Changed]) -> None:
        """Recompute the columns that are not sums, of traces from which calls were withdrawn.

        Removes traces without calls.
        """
        if not withdrawn:
            return
        days, trace_ids = zip(*sorted({(row.day, row.trace_id) for row in withdrawn}), strict=True)
        traces = {"days": arrays.days(days), "trace_ids": arrays.texts(trace_ids)}
        self.send("recount_traces", **traces)
        self.send("forget_empty_traces", **traces)

    def taken_slots(self, calls: Sequence[Call]) -> dict[Key, tuple[Any, ...]]:
        """Start batch and position, end batch and position of each call's row, by key."""
        rows = self.run("taken_slots", **key_columns(calls))
        return {(row[0], row[1].int): row[2:] for row in rows}

    def write_violations(
        self, completed: Sequence[tuple[Changed, Candidate]], replaced: Sequence[Changed]
    ) -> None:
        """Write the violations in the end events of calls completed now.

        `replaced` are earlier reports of calls. They no longer count: their violations are removed.
        """
        gone = self._withdraw_violations([row for row in replaced if row.violation_count])
        rows = [
            (
                row.day,
                row.invocation_id,
                ordinal,
                row.started_us,
                row.tool_name,
                row.tool_version,
                *violation,
            )
            for row, end in completed
            for ordinal, violation in enumerate(violations(end))
        ]
        if rows:
            self._insert_violations(rows)
        self._settle_violation_days(gone, rows)

    def _insert_violations(self, rows: Sequence[tuple[Any, ...]]) -> None:
        columns = list(zip(*rows, strict=True))
        values: dict[str, arrays.PgArray] = {
            "started_on": arrays.days(columns[0]),
            "invocation_id": arrays.uuids(columns[1]),
            "ordinal": arrays.ints(columns[2]),
            "started_at": arrays.instants(columns[3]),
            **{
                name: arrays.texts(column)
                for name, column in zip(_VIOLATION_TEXTS, columns[4:], strict=True)
            },
        }
        self.send("insert_violations", **values)
        self.send("upsert_violation_days", **values)

    def _withdraw_violations(self, replaced: Sequence[Changed]) -> list[tuple[Any, ...]]:
        if not replaced:
            return []
        return self.run(
            "withdraw_violations",
            invocation_ids=arrays.uuids([row.invocation_id for row in replaced]),
            days=arrays.days([row.day for row in replaced]),
        )

    def _settle_violation_days(
        self, gone: Sequence[tuple[Any, ...]], rows: Sequence[tuple[Any, ...]]
    ) -> None:
        """Update the first and last call of each kind after violations were removed.

        They are looked up only if no new violation replaces them, as that reads the whole day.
        """
        if not gone:
            return
        written = {(row[0], row[3], *(row[at] for at in _OF_KIND)) for row in rows}
        unsettled = [
            (day, kind)
            for day, kind, *texts, first_at, last_at in gone
            if any(
                at is not None and (day, microseconds(at), *texts) not in written
                for at in (first_at, last_at)
            )
        ]
        if not unsettled:
            return
        days, kinds = zip(*sorted(unsettled), strict=True)
        settled = {"days": arrays.days(days), "kinds": arrays.uuids(kinds)}
        self.send("forget_empty_violation_days", **settled)
        self.send("settle_violation_days", **settled)

    def write_deltas(self, deltas: Deltas) -> None:
        """Add to traces, to rollups by quarter and hour, and to errors, each in order of key."""
        if traces := sorted(deltas.traces.items()):
            self._upsert(
                "upsert_traces",
                [
                    (
                        *key,
                        each.first_started_us,
                        each.last_us,
                        each.first_tool_name,
                        None if each.run is None else each.run[1],
                        None if each.run is None else each.run[0],
                        each.started,
                        each.completed,
                        each.failed,
                        each.violations,
                        min(each.prompt_tokens, BIGINT_MAX),
                        min(each.completion_tokens, BIGINT_MAX),
                        each.decisions,
                        each.cancelled,
                    )
                    for key, each in traces
                ],
                _TRACE_COLUMNS,
            )
        if quarters := sorted(deltas.quarters.items()):
            columns = _rollup_columns(quarters)
            self.send("upsert_quarter_rollups", **columns)
            hours = sorted(deltas.hours.items())
            # Most requests have a single quarter: then rows and their order are the same by hour.
            # With several quarters, the order of tools differs by hour, and writers that lock rows
            # in different orders deadlock.
            if quarters[0][0][:2] != quarters[-1][0][:2]:
                columns = _rollup_columns(hours)
            begins_at = arrays.instants([key[1] for key, _ in hours])
            self.send("upsert_rollups", **(columns | {"begins_at": begins_at}))
        if errors := sorted(deltas.errors.items()):
            self._upsert(
                "upsert_error_rollups", [(*key, calls) for key, calls in errors], _ERROR_COLUMNS
            )

    def write_gaps(self, gaps: Sequence[wire.GapEvent]) -> set[tuple[str, int, int]]:
        """Write losses not reported before. Returns their keys. `gaps` have different keys."""
        if not gaps:
            return set()
        ordered = sorted(gaps, key=lambda gap: (gap.producer_id, gap.from_seq, gap.to_seq))
        rows = self.run(
            "insert_gaps",
            producer_id=arrays.texts([gap.producer_id for gap in ordered]),
            from_seq=arrays.bigints([gap.from_seq for gap in ordered]),
            to_seq=arrays.bigints([gap.to_seq for gap in ordered]),
            reason=arrays.texts([gap.reason for gap in ordered]),
            lost_count=arrays.bigints([gap.count for gap in ordered]),
        )
        return {(producer_id, first, last) for producer_id, first, last in rows}

    def write_producers(self, producers: Mapping[str, tuple[int | None, int | None, int]]) -> None:
        """Update producers: lowest and highest sequence number, and number of new events."""
        if not producers:
            return
        ordered = sorted(producers.items())
        self.send(
            "upsert_producers",
            producer_id=arrays.texts([producer_id for producer_id, _ in ordered]),
            first_seq=arrays.bigints([each[0] for _, each in ordered]),
            last_seq=arrays.bigints([each[1] for _, each in ordered]),
            event_count=arrays.bigints([each[2] for _, each in ordered]),
        )

    def _upsert(
        self, name: str, rows: list[tuple[Any, ...]], columns: tuple[tuple[str, Any], ...]
    ) -> None:
        values = zip(columns, zip(*rows, strict=True), strict=True)
        self.send(name, **{column: encode(each) for (column, encode), each in values})


def _rollup_columns(deltas: Sequence[tuple[RollupKey, RollupDelta]]) -> dict[str, Any]:
    """The parameters for the statements that write rollups. `begins_at` is from the key."""
    rows = [
        (
            *key,
            each.started,
            each.completed,
            each.failed,
            each.violating_calls,
            each.violations,
            min(each.duration_us, BIGINT_MAX),
            min(each.prompt_tokens, BIGINT_MAX),
            min(each.completion_tokens, BIGINT_MAX),
            each.cache_hits,
            histogram.to_number(each.buckets),
        )
        for key, each in deltas
    ]
    values = zip(_ROLLUP_COLUMNS, zip(*rows, strict=True), strict=True)
    return {column: encode(each) for (column, encode), each in values}


def changed_of(
    day: int, invocation_id: UUID, started_at: datetime, ended_at: datetime | None, *rest: Any
) -> Changed:
    """A row as PostgreSQL returned it."""
    ended_us = None if ended_at is None else microseconds(ended_at)
    return Changed(day, invocation_id, microseconds(started_at), ended_us, *rest)


def _new(row: Row, took_start: bool, took_end: bool) -> Changed:
    """A row that was not stored before, as it was sent."""
    call, shared, ending = row.call, row.shared, row.ending
    # By position, for each call: by name, msgspec takes ten times as long.
    return Changed(
        call.day,
        call.invocation_id,
        call.started_us,
        ending.ended_us,
        ending.duration_us,
        ending.state,
        shared[_TOOL_NAME],
        shared[_TOOL_VERSION] or "",
        shared[_TRACE_ID],
        shared[_RUN_ID],
        ending.error_type,
        ending.violation_count,
        ending.prompt_tokens,
        ending.completion_tokens,
        ending.cache_hit,
        took_start,
        took_end,
        True,
    )


_TOOL_NAME, _TOOL_VERSION, _TRACE_ID, _RUN_ID = (
    SHARED.index(name) for name in ("tool_name", "tool_version", "trace_id", "run_id")
)
_VIOLATION_TEXTS = (
    "tool_name",
    "tool_version",
    "path",
    "path_pattern",
    "code",
    "severity",
    "expected",
    "received",
    "strategy",
    "outcome",
    "found_by",
)
_OF_KIND = (4, 5, 7, 8, 12, 13)
"""The places of tool, version, path pattern, code, strategy and outcome in a violation's row."""
_TRACE_COLUMNS = (
    ("started_on", arrays.days),
    ("trace_id", arrays.texts),
    ("first_started_at", arrays.instants),
    ("last_at", arrays.instants),
    ("first_tool_name", arrays.texts),
    ("run_id", arrays.texts),
    ("run_at", arrays.instants),
    ("started_count", arrays.bigints),
    ("completed_count", arrays.bigints),
    ("failed_count", arrays.bigints),
    ("violation_count", arrays.bigints),
    ("prompt_tokens", arrays.bigints),
    ("completion_tokens", arrays.bigints),
    ("decision_count", arrays.bigints),
    ("cancelled_count", arrays.bigints),
)
_ROLLUP_COLUMNS: tuple[tuple[str, Any], ...] = (
    ("started_on", arrays.days),
    ("begins_at", arrays.instants),
    ("tool_name", arrays.texts),
    ("tool_version", arrays.texts),
    ("started_count", arrays.bigints),
    ("completed_count", arrays.bigints),
    ("failed_count", arrays.bigints),
    ("violating_call_count", arrays.bigints),
    ("violation_count", arrays.bigints),
    ("duration_us", arrays.bigints),
    ("prompt_tokens", arrays.bigints),
    ("completion_tokens", arrays.bigints),
    ("cache_hit_count", arrays.bigints),
    ("histogram", arrays.texts),
)
_ERROR_COLUMNS = (
    ("started_on", arrays.days),
    ("hour_at", arrays.instants),
    ("tool_name", arrays.texts),
    ("tool_version", arrays.texts),
    ("error_type", arrays.texts),
    ("call_count", arrays.bigints),
)
