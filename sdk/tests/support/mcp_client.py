"""A client of a recorded MCP server over standard streams, and what the recorder wrote."""

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tooltrail.spool.lines import salvage

from sdk.tests.support.ingest_key import KEY

SERVER = Path(__file__).parent / "mcp_server.py"
PATIENCE_SECONDS = 120.0


@dataclass
class Piped:
    """A process that speaks MCP: the recorder, or a server without it."""

    process: "subprocess.Popen[bytes]"
    received: bytearray = field(default_factory=bytearray)

    def send(self, data: bytes) -> None:
        assert self.process.stdin is not None
        view = memoryview(data)
        while view:
            view = view[os.write(self.process.stdin.fileno(), view) :]

    def request(self, id: int, method: str, params: Any) -> None:
        message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        self.send(json.dumps(message).encode() + b"\n")

    def call(self, id: int, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its answer."""
        self.request(id, "tools/call", {"name": "echo", "arguments": arguments})
        answer: dict[str, Any] = json.loads(self.read_line())
        return answer

    def read_line(self) -> bytes:
        while b"\n" not in self.received:
            assert self.read_some(), "the output ended"
        line, _, rest = bytes(self.received).partition(b"\n")
        self.received[:] = rest
        return line

    def read_some(self, size: int = 1 << 20) -> bytes:
        """What comes next; empty at the end."""
        assert self.process.stdout is not None
        source = self.process.stdout.fileno()
        assert select.select([source], [], [], PATIENCE_SECONDS)[0], "nothing came"
        data = os.read(source, size)
        self.received += data
        return data

    def rest(self, timeout: float = PATIENCE_SECONDS) -> bytes:
        """End the input, and return all that still comes."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        while self.read_some():
            pass
        self.process.wait(timeout)
        return bytes(self.received)

    @property
    def peak_mib(self) -> float:
        """The most memory that the process has had, in MiB (Linux)."""
        return peak_mib(self.process)


def peak_mib(process: "subprocess.Popen[bytes]") -> float:
    """The most memory that a process has had, in MiB (Linux)."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    (line,) = [each for each in status.splitlines() if each.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


@contextmanager
def piped(command: list[str], environment: Mapping[str, str] | None = None) -> Iterator[Piped]:
    """Run a command for the block."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        env={**os.environ, **(environment or {})},
    )
    try:
        yield Piped(process)
    finally:
        with suppress(OSError):
            process.kill()
        process.wait(PATIENCE_SECONDS)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def server_command(mode: str = "echo", log: Path | None = None) -> list[str]:
    """The command of the plain server."""
    return [sys.executable, str(SERVER), mode, *([str(log)] if log else ())]


def recorder_command(*options: str) -> list[str]:
    """The recorder's command, without the server's."""
    return [sys.executable, "-m", "tooltrail", "mcp", *options, "--"]


def recorder_environment(url: str, spool_dir: Path) -> dict[str, str]:
    """Where the recorder sends and keeps events."""
    return {
        "TOOLTRAIL_URL": url,
        "TOOLTRAIL_API_KEY": KEY,
        "TOOLTRAIL_SPOOL_DIR": str(spool_dir),
        "TOOLTRAIL_EXIT_TIMEOUT": "0.2",
    }


def spooled(spool_dir: Path) -> list[dict[str, Any]]:
    """All events in the files of all processes, as a kill left them."""
    events = []
    for path in sorted(spool_dir.glob("*/*/*")):
        if path.suffix in (".open", ".batch"):
            events += [json.loads(line) for line in salvage(path.read_bytes(), 0).lines]
    return events


def wait_until_ended(pid: int) -> None:
    """Wait until a process that is not a child of ours has ended."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return
        if state == "Z":
            return
        time.sleep(0.01)
    raise AssertionError(f"process {pid} still runs")
