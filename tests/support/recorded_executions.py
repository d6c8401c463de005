"""Executions recorded from the TypeScript executor, as event lines with times."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from config.instance import BASE_DIR

RECORDING = BASE_DIR / "sdk/tests/conformance/tool_executor.jsonl"
ROWS = [json.loads(line) for line in RECORDING.read_text().splitlines()]


def javascript(instant: datetime) -> str:
    """As `JSON.stringify` writes a `Date`."""
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def emitted(row: dict[str, Any], started_at: datetime, write: Any = javascript) -> list[bytes]:
    """The event lines of a recorded execution. `write` formats its times."""
    times = {
        "startedAt": write(started_at),
        "endedAt": write(started_at + timedelta(milliseconds=12)),
        "durationMs": 12.137800000000169,
    }
    types = {
        "tool_execution_start": "toolExecutionStart",
        "tool_execution_end": "toolExecutionEnd",
    }
    return [
        json.dumps(
            {"type": types[event["event"]]}
            | {name: event.get(name, times.get(name)) for name in event["fields"]},
            ensure_ascii=False,
            separators=(",", ":"),
        ).encode()
        for event in row["events"]
        if event["event"] in types
    ]
