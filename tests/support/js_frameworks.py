"""The scripts that run frameworks in JavaScript: their packages, and the calls they recorded."""

import fcntl
import subprocess
from pathlib import Path

from sdk.tests.integrations.calls import RecordedCall
from sdk.tests.support.ingest_server import Server

TIMEOUT_S = 300


def install(folder: Path) -> None:
    """Install exactly the versions of a framework's `package.json`, once for all processes."""
    with (folder.parents[2] / "node_modules" / f".lock-{folder.name}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        pins, stamp = folder / "package.json", folder / "node_modules" / ".installed"
        if not stamp.exists() or stamp.read_text() != pins.read_text():
            npm = ["npm", "install", "--no-package-lock", "--no-audit", "--no-fund"]
            subprocess.run([*npm, "--loglevel=error"], cwd=folder, check=True, timeout=TIMEOUT_S)
            stamp.write_text(pins.read_text())


def calls_of(server: Server) -> list[RecordedCall]:
    calls: dict[str, RecordedCall] = {}
    assert server.duplicates == 0, "the same event twice"
    for event in server.events:
        if event["type"] == "toolExecutionStart":
            calls[event["invocation_id"]] = RecordedCall(event)
    for event in server.events:
        if event["type"] == "toolExecutionEnd":
            calls[event["invocation_id"]].ends.append(event)
    return list(calls.values())
