"""Identical calls of a range: which, how often, in which traces, and whether results differ.

No index can count how often calls occur, so each call of the range is read once, up to `CALLS`. Of
a range with more calls, only the newest whole hours are read, and the answer says since when.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import connection

from audit.log.payload import read_events
from audit.queries.among import ALL, Among
from audit.queries.repetition import (
    LOOP,
    InTrace,
    Repeat,
    Verdict,
    arguments_text,
    compare,
    loops,
    repeats,
    result_digest,
)
from audit.queries.time_range import TimeRange
from audit.sql.run import rows
from tenants.scope import current_tenant_id

CALLS = 400_000
"""Maximum calls that are read, unless fewer are requested."""
CANDIDATES = 2_000
"""Call ids that are looked up by index, to see whether they loop in a trace."""
REPEATS, LOOPS = 200, 200
"""How many of the most frequent call ids and loops have their figures summed up."""
COMPARED, RESULTS = 20, 5
"""How many repeats are compared, and how many of the newest results of each."""
COMPARE_SECONDS = 0.3
_WORK_MEM = "64MB"  # groups half a million call ids in memory; with 4 MB they would go to disk


@dataclass(slots=True)
class Repeats:
    """The identical calls of a range. Totals cover all of them, the lists the most frequent."""

    since: datetime
    """Calls from this instant on were read: the start of the range, or later."""
    is_all: bool
    repeated: int
    """Call ids that occur more than once; `repeated_calls` is the number of their calls."""
    repeated_calls: int
    loop_count: int
    """Loops; `loop_calls` is the number of their calls."""
    loop_calls: int
    loops: list[InTrace]
    repeats: list[Repeat]


@dataclass(frozen=True, slots=True)
class Compared:
    """The newest results of a repeat, compared."""

    repeat: Repeat
    verdict: Verdict
    results: int
    """How many were compared."""
    different: int
    """How many distinct results there are among them."""


def find_repeats(
    of: TimeRange,
    tool: str | None,
    polling: Sequence[str],
    *,
    at_most: int | None = None,
    among: Among = ALL,
) -> Repeats:
    """The identical calls of a range, without those of polling tools. Five statements.

    Reads at most `at_most` calls (None: `CALLS`), those of the newest whole hours. The newest hour
    is always read completely.
    """
    parameters = _parameters(of, tool, polling)
    since = _counted_since(of, parameters, at_most or CALLS)
    parameters |= {"start": since, "first_day": since.astimezone(UTC).date()} | among.parameters
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL work_mem = '{_WORK_MEM}'")
    everywhere = rows(
        "repeated_calls",
        parameters | {"loop_calls": LOOP, "repeat_limit": CANDIDATES},
        conditions=among.conditions,
    )
    looping = _looping(everywhere, parameters, among) if everywhere else []
    wanted = {row[0] for row in everywhere[:REPEATS]}
    places = {(row[0], row[1]) for row in looping}
    call_ids = sorted(wanted | {call_id for call_id, _ in places})
    in_traces = _in_traces(parameters | {"call_ids": call_ids}, among) if call_ids else []
    return Repeats(
        since=since,
        is_all=since == of.start,
        repeated=everywhere[0][2] if everywhere else 0,
        repeated_calls=everywhere[0][3] if everywhere else 0,
        loop_count=looping[0][2] if looping else 0,
        loop_calls=looping[0][3] if looping else 0,
        loops=loops(one for one in in_traces if (one.call_id, one.trace_id) in places),
        repeats=repeats(one for one in in_traces if one.call_id in wanted),
    )


def compare_results(
    of: TimeRange,
    summary: Repeats,
    tool: str | None,
    polling: Sequence[str],
    *,
    among: Among = ALL,
) -> list[Compared]:
    """Whether the results of the most frequent repeats differ, for as many as time allows.

    For each, one statement, and one to the log.
    """
    parameters = _parameters(of, tool, polling)
    parameters |= {"start": summary.since, "first_day": summary.since.astimezone(UTC).date()}
    parameters |= among.parameters
    began, compared = time.monotonic(), []
    for repeat in summary.repeats[:COMPARED]:
        own = {"tool": repeat.tool_name, "call_id": repeat.call_id, "result_limit": RESULTS}
        places = rows("newest_results", parameters | own, conditions=among.conditions)
        events = read_events(current_tenant_id(), places)
        digests = [result_digest(event.raw) for event in events.values()]
        known = [digest for digest in digests if digest is not None]
        compared.append(Compared(repeat, compare(digests), len(known), len(set(known))))
        if time.monotonic() - began > COMPARE_SECONDS:
            break
    return compared


def newest_arguments(
    of: TimeRange,
    summary: Repeats,
    calls: Iterable[InTrace | Repeat],
    tool: str | None,
    polling: Sequence[str],
    *,
    among: Among = ALL,
) -> dict[tuple[str, str], str]:
    """The arguments of the newest call of each, by tool and call id, as a short line of JSON.

    A call without a start event, or with an erased one, is left out. One statement, and one to the
    log.
    """
    wanted = sorted({(one.tool_name, one.call_id) for one in calls})
    parameters = _parameters(of, tool, polling)
    parameters |= {"start": summary.since, "first_day": summary.since.astimezone(UTC).date()}
    parameters |= {"tools": [name for name, _ in wanted], "call_ids": [pk for _, pk in wanted]}
    parameters |= among.parameters
    newest = rows("newest_arguments", parameters, conditions=among.conditions)
    places = {(row[2], row[3]): (row[0], row[1]) for row in newest}
    events = read_events(current_tenant_id(), places)
    texts = {places[place]: arguments_text(event.raw) for place, event in events.items()}
    return {key: text for key, text in texts.items() if text is not None}


def _looping(
    repeated: list[tuple[Any, ...]], parameters: dict[str, Any], among: Among
) -> list[tuple[Any, ...]]:
    """Which call ids loop in which traces.

    Only call ids that occur at least `LOOP` times in the range can loop. If there are few, they are
    looked up by index; otherwise all calls are read again.
    """
    often = [call_id for call_id, calls, *_ in repeated if calls >= LOOP]
    if not often:
        return []
    is_few = repeated[0][4] == len(often)
    own = {"call_ids": often if is_few else None, "loop_calls": LOOP, "loop_limit": LOOPS}
    return rows("looping_calls", parameters | own, conditions=among.conditions)


def _in_traces(parameters: dict[str, Any], among: Among) -> list[InTrace]:
    in_traces = []
    for row in rows("repeats_in_traces", parameters, conditions=among.conditions):
        tool_name, call_id, trace_id, calls, failed, cache_hits, duration_us, tokens = row[:8]
        first_at, last_at, first_duration_us, first_tokens = row[8:]
        in_traces.append(
            InTrace(
                tool_name=tool_name,
                call_id=call_id,
                trace_id=trace_id,
                calls=calls,
                failed=failed,
                cache_hits=cache_hits,
                duration_us=int(duration_us),
                tokens=int(tokens),
                first_at=first_at,
                last_at=last_at,
                first_duration_us=int(first_duration_us),
                first_tokens=int(first_tokens),
            )
        )
    return in_traces


def _parameters(of: TimeRange, tool: str | None, polling: Sequence[str]) -> dict[str, Any]:
    return {
        "tool": tool,
        "polling": list(polling),
        "start": of.start,
        "end": of.end,
        "first_day": of.start.astimezone(UTC).date(),
        "last_day": of.end.astimezone(UTC).date(),
    }


def _counted_since(of: TimeRange, parameters: dict[str, Any], at_most: int) -> datetime:
    """The start of the range, or of its newest hours that have at most `at_most` calls together.

    The newest hour is always included, however many calls it has.
    """
    seen, since = 0, of.start
    for hour, calls in rows("calls_by_hour", parameters):
        seen += calls
        if seen > at_most and since != of.start:
            return since
        since = max(hour, of.start)
        if since == of.start:
            break
    return of.start
