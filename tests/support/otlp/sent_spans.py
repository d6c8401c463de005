"""Spans that real packages sent, as one trace, and the events made of them."""

import json
from pathlib import Path
from typing import Any

import msgspec

from audit.events.spans import Span
from audit.intake.otlp.accounts import to_events
from audit.intake.otlp.mapping import map_spans
from tests.support.documents import ROOT

VECTORS: Path = ROOT / "tests" / "audit" / "intake" / "otlp" / "vectors"
SPANS: dict[str, dict[str, Any]] = json.loads((VECTORS / "spans.json").read_text())
TRACE = "0af7651916cd43dd8448eb211c80319c"
START = 1_795_418_651_539_000_000


def read(vector: str, number: int = 1, parent: int = 0, **members: Any) -> Span:
    """The span of that name in the one trace."""
    ids = {"trace_id": TRACE, "span_id": f"{number:016x}"}
    times = {"start_time_unix_nano": START, "end_time_unix_nano": START + 900_000}
    above = {"parent_span_id": f"{parent:016x}"} if parent else {}
    return msgspec.convert({**SPANS[vector], **ids, **times, **above, **members}, Span)


def events_of(*spans: Span) -> tuple[dict[str, Any], dict[str, Any]]:
    """The events of the only call that the spans are."""
    (call,) = map_spans(spans).calls
    start, end = to_events(call)
    return json.loads(start), json.loads(end)
