"""What the server acknowledged last, in a file of the root. `verify` compares bundles with it.

The file is replaced as a whole. Of several processes with one root, the largest ledger stays.
"""

import json
import os
import re
import secrets
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic_core import from_json

ACKNOWLEDGED = "acknowledged.json"
_NO_ENTRY = b'{"type":"toolDefinitions"'
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def acknowledgement(
    answer: dict[str, Any], batch_id: str, lines: list[bytes]
) -> dict[str, Any] | None:
    """What is kept of an answer with status 200. None if it does not say where the events are.

    `lines` are the events that were sent. Those that the server rejected are left out, and lists of
    definitions, which are no events of the ledger.
    """
    ledger, rejected = answer.get("ledger"), answer.get("rejected")
    if not isinstance(ledger, dict):
        return None
    first_index, size = ledger.get("first_index"), ledger.get("size")
    if not (isinstance(first_index, int) and isinstance(size, int) and 0 <= first_index < size):
        return None
    refused = {
        each.get("line")
        for each in (rejected if isinstance(rejected, list) else [])
        if isinstance(each, dict)
    }
    stored = [
        line
        for number, line in enumerate(lines, 1)
        if number not in refused and not line.startswith(_NO_ENTRY)
    ]
    return {
        "at": datetime.now(UTC).isoformat(),
        "batch_id": batch_id,
        "first_index": first_index,
        "size": size,
        "event_ids": [name for line in stored if (name := _event_id(line)) is not None],
    }


def keep_acknowledged(root: Path, kept: dict[str, Any], *, fsync: bool) -> None:
    """Write it into the root unless a larger ledger is there. Raises OSError."""
    path = root / ACKNOWLEDGED
    with suppress(OSError, ValueError, LookupError, TypeError):
        if json.loads(path.read_bytes())["size"] > kept["size"]:
            return
    draft = root / f".{ACKNOWLEDGED}.{secrets.token_hex(8)}"
    try:
        with draft.open("w") as file:
            json.dump(kept, file)
            if fsync:
                file.flush()
                os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _event_id(line: bytes) -> str | None:
    with suppress(ValueError):
        event = from_json(line)
        name = event.get("event_id") if isinstance(event, dict) else None
        if isinstance(name, str) and _UUID.fullmatch(name):
            return name
    return None
