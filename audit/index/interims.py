"""Writes interim events: end events that report the state of an open call, waiting or working.

The latest one counts, in whatever order they arrive, until an end event without such a state comes.
"""

from collections.abc import Sequence

from audit.events.candidates import Candidate
from audit.events.instants import microseconds
from audit.index.columns import key_columns
from audit.index.merge import Call
from audit.sql import arrays
from audit.sql.run import Statements

INTERIMS_KNOWN = 200
"""Interim events of one call that are recognized when they are sent again."""


def note_interims(writer: Statements, calls: Sequence[Call]) -> set[Candidate]:
    """Write the states of these open calls. The calls have rows and interim events.

    Returns the events that were not stored before. An event that is older than the latest
    `INTERIMS_KNOWN` counts as stored.
    """
    if not calls:
        return set()
    known = {
        (day, pk.int): (microseconds(at) if at else 0, state or "", times or [])
        for day, pk, at, state, times in writer.run("interims_of_calls", **key_columns(calls))
    }
    fresh: set[Candidate] = set()
    changes: list[tuple[Call, Candidate, bool, list[int]]] = []
    for call in calls:
        at_us, state, times = known[call.key]
        latest = call.interim
        assert latest is not None
        by_time = {each.ended_us: each for each in reversed(call.interims)}
        kept = sorted({*times, *by_time})[-INTERIMS_KNOWN:]
        new = by_time.keys() & set(kept) - set(times)
        fresh.update(by_time[each] for each in new)
        is_later = (latest.ended_us, latest.interim_state or "") > (at_us, state)
        if new or is_later:
            changes.append((call, latest, is_later, kept))
    if changes:
        changing, events, are_later, kept_times = zip(*changes, strict=True)
        writer.send(
            "note_interims",
            **key_columns(changing),
            is_later=arrays.booleans(are_later),
            states=arrays.texts([each.interim_state for each in events]),
            at=arrays.instants([each.ended_us for each in events]),
            batch_ids=arrays.uuids([each.batch_id for each in events]),
            positions=arrays.ints([each.position for each in events]),
            times=arrays.texts([",".join(map(str, each)) for each in kept_times]),
        )
    return fresh
