"""Identical calls of a range: which, how often, in which traces, and whether results differ.

No index serves the question how often anything occurs, so each call of the range is looked at
once, up to `CALLS`; of a range with more the newest whole hours, and the answer says since when.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import connection

from audit.log.payload import read_events
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
"""Calls that are looked at, if nobody asks for fewer."""
CANDIDATES = 2_000
"""Call ids of which an index is asked whether they loop in a trace."""
REPEATS, LOOPS = 200, 200
"""Call ids and loops whose figures are summed up, the most frequent."""
COMPARED, RESULTS = 20, 5
"""Repeats whose results are compared, and how many of each, the newest."""
COMPARE_SECONDS = 0.3
_WORK_MEM = "64MB"  # half a million call ids are grouped in memory; 4 MB would go to disk


@dataclass(slots=True)
class Repeats:
    """The identical calls of a range. Totals are of all, the lists of the most frequent."""

    since: datetime
    """Calls from then on were looked at: the range's start, or later."""
    is_all: bool
    repeated: int
    """Call ids that occur more than once, and of how many calls they are."""
    repeated_calls: int
    loop_count: int
    """Loops, and of how many calls they are."""
    loop_calls: int
    loops: list[InTrace]
    repeats: list[Repeat]


@dataclass(frozen=True, slots=True)
class Compared:
    """What came of comparing the newest results of a repeat."""

    repeat: Repeat
    verdict: Verdict
    results: int
    """How many were compared."""
    different: int
    """How many different ones there are among them."""


def find_repeats(
    of: TimeRange, tool: str | None, polling: Sequence[str], *, at_most: int | None = None
) -> Repeats:
    """The identical calls of a range, without those of polling tools. Five statements.

    Of so many calls at most (None: `CALLS`), the newest whole hours', but for the newest hour,
    which is whole.
    """
    parameters = _parameters(of, tool, polling)
    since = _looked_at_since(of, parameters, at_most or CALLS)
    parameters |= {"start": since, "first_day": since.astimezone(UTC).date()}
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL work_mem = '{_WORK_MEM}'")
    everywhere = rows(
        "repeated_calls", parameters | {"loop_calls": LOOP, "repeat_limit": CANDIDATES}
    )
    looping = _looping(everywhere, parameters) if everywhere else []
    wanted = {row[0] for row in everywhere[:REPEATS]}
    places = {(row[0], row[1]) for row in looping}
    call_ids = sorted(wanted | {call_id for call_id, _ in places})
    in_traces = _in_traces(parameters | {"call_ids": call_ids}) if call_ids else []
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
    of: TimeRange, found: Repeats, tool: str | None, polling: Sequence[str]
) -> list[Compared]:
    """The most frequent repeats with whether their results differ, as many as time allows.

    A statement, and one to the log, for each.
    """
    parameters = _parameters(of, tool, polling)
    parameters |= {"start": found.since, "first_day": found.since.astimezone(UTC).date()}
    began, compared = time.monotonic(), []
    for repeat in found.repeats[:COMPARED]:
        own = {"tool": repeat.tool_name, "call_id": repeat.call_id, "result_limit": RESULTS}
        places = rows("newest_results", parameters | own)
        events = read_events(current_tenant_id(), places)
        digests = [result_digest(event.raw) for event in events.values()]
        known = [digest for digest in digests if digest is not None]
        compared.append(Compared(repeat, compare(digests), len(known), len(set(known))))
        if time.monotonic() - began > COMPARE_SECONDS:
            break
    return compared


def newest_arguments(
    of: TimeRange,
    found: Repeats,
    calls: Iterable[InTrace | Repeat],
    tool: str | None,
    polling: Sequence[str],
) -> dict[tuple[str, str], str]:
    """The arguments of each one's newest call, by tool and call id, as a short line of JSON.

    Of calls without a start, or with an erased one, none. A statement, and one to the log.
    """
    wanted = sorted({(one.tool_name, one.call_id) for one in calls})
    parameters = _parameters(of, tool, polling)
    parameters |= {"start": found.since, "first_day": found.since.astimezone(UTC).date()}
    parameters |= {"tools": [name for name, _ in wanted], "call_ids": [pk for _, pk in wanted]}
    places = {(row[2], row[3]): (row[0], row[1]) for row in rows("newest_arguments", parameters)}
    events = read_events(current_tenant_id(), places)
    texts = {places[place]: arguments_text(event.raw) for place, event in events.items()}
    return {key: text for key, text in texts.items() if text is not None}


def _looping(repeated: list[tuple[Any, ...]], parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Which call ids loop in which traces. What occurs thrice anywhere is looked up by an index.

    That pays as long as there are few; else all calls are looked at again.
    """
    often = [call_id for call_id, calls, *_ in repeated if calls >= LOOP]
    if not often:
        return []
    is_few = repeated[0][4] == len(often)
    own = {"call_ids": often if is_few else None, "loop_calls": LOOP, "loop_limit": LOOPS}
    return rows("looping_calls", parameters | own)


def _in_traces(parameters: dict[str, Any]) -> list[InTrace]:
    found = []
    for row in rows("repeats_in_traces", parameters):
        tool_name, call_id, trace_id, calls, failed, cache_hits, duration_us, tokens = row[:8]
        first_at, last_at, first_duration_us, first_tokens = row[8:]
        found.append(
            InTrace(
                tool_name,
                call_id,
                trace_id,
                calls,
                failed,
                cache_hits,
                int(duration_us),
                int(tokens),
                first_at,
                last_at,
                int(first_duration_us),
                int(first_tokens),
            )
        )
    return found


def _parameters(of: TimeRange, tool: str | None, polling: Sequence[str]) -> dict[str, Any]:
    return {
        "tool": tool,
        "polling": list(polling),
        "start": of.start,
        "end": of.end,
        "first_day": of.start.astimezone(UTC).date(),
        "last_day": of.end.astimezone(UTC).date(),
    }


def _looked_at_since(of: TimeRange, parameters: dict[str, Any], at_most: int) -> datetime:
    """The start of the range, or of the first of its newest hours that hold no more calls.

    Of the newest hour alone all calls are looked at, however many.
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
