"""Spools of processes that ended: leave one behind, read one, and let a new process adopt it."""

import json
from collections.abc import Callable
from typing import Any

from tooltrail import Trail
from tooltrail.spool.segments import SegmentSpool

from sdk.tests.support.ingest_server import Server


def adopt_segments(server: Server, make_trail: Callable[..., Trail]) -> Trail:
    """The trail of a new process, after it has sent the events that ended processes left."""
    trail = make_trail()

    @trail.tool(version="1")
    def hello() -> None: ...

    hello()
    server.wait(lambda: any(event["tool_name"] == "hello" for event in server.events))
    assert trail.flush(20)
    return trail


def spooled_events(spool: SegmentSpool) -> list[dict[str, Any]]:
    """All events that the spool would send."""
    spool.declare()
    spool.seal()
    return [json.loads(line) for batch in spool.batches() for line in spool.read(batch)]


def spooled_event(n: int) -> bytes:
    """The line of a small event with a number."""
    return b'{"type":"toolExecutionStart","n":%d' % n


def abandon_spool(spool: SegmentSpool) -> None:
    """Leave the spool as a killed process does: files unchanged, the lock free."""
    spool.abandon()
