"""The rows that both SDKs share: this SDK gives the same (sdk-js/test/vectors.test.mjs)."""

import base64
import json
from pathlib import Path
from typing import Any
from uuid import UUID

from tooltrail.capture import Capture
from tooltrail.ledger.leaf import Entry, Kind, commit_of, leaf_of
from tooltrail.redact import Note, Redactor
from tooltrail.spool.lines import salvage

VECTORS = Path(__file__).resolve().parents[2] / "sdk-js" / "test" / "vectors"


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (VECTORS / name).read_text().splitlines()]


def test_the_same_is_redacted() -> None:
    shared = rows("redaction.jsonl")
    for row in shared:
        notes: list[Note] = []
        capture = Capture(row["mode"], Redactor(**row["rule"]), row["max_bytes"])
        captured = json.loads(capture.encode(row["value"], "$.args", notes))
        assert (captured, notes) == (row["captured"], row["notes"]), row["id"]
    assert len(shared) == 528


def test_the_same_is_saved_from_damaged_segments() -> None:
    shared = rows("segments.jsonl")
    for row in shared:
        saved = salvage(base64.b64decode(row["data"]), row["first_seq"], row["count"])
        lost = [[each.start, each.stop] for each in saved.lost]
        assert ([line.decode() for line in saved.lines], lost) == (row["lines"], row["lost"]), row[
            "id"
        ]
    assert len(shared) == 59


def test_an_event_has_the_same_leaf() -> None:
    shared = rows("ledger_leaf.jsonl")
    for row in shared:
        raw = row["raw"].encode()
        entry = Entry(
            kind=Kind(row["kind"]),
            event_id=UUID(row["event_id"]),
            invocation_id=UUID(row["invocation_id"]),
            received_us=int(row["received_us"]),
            raw_length=len(raw),
            commit=commit_of(bytes.fromhex(row["salt"]), raw),
        ).to_bytes()
        assert (entry.hex(), leaf_of(entry).hex()) == (row["entry"], row["leaf"]), row["id"]
    assert len(shared) == 24
