"""A recorder that listens for HTTP clients, as a process of its own, and the server behind it."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from sdk.tests.support.mcp_client import PATIENCE_SECONDS, peak_mib

ROOT = Path(__file__).parents[3]
SERVER = "sdk.tests.support.mcp_http_server"


@dataclass
class Listening:
    """A process that listens for HTTP clients."""

    process: "subprocess.Popen[bytes]"
    port: int

    @property
    def peak_mib(self) -> float:
        """The most memory that the process has had, in MiB (Linux)."""
        return peak_mib(self.process)

    def connect(self) -> HTTPConnection:
        return HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)


def call_text(number: int, **arguments: Any) -> bytes:
    """A request that calls the tool `echo` with its own number."""
    params = {"name": "echo", "arguments": {"n": number, **arguments}}
    call = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    return json.dumps(call).encode()


def call(connection: HTTPConnection, path: str, number: int, **arguments: Any) -> dict[str, Any]:
    """Call the tool and return its answer. Raises OSError or HTTPException."""
    body = call_text(number, **arguments)
    connection.request("POST", path, body, {"Content-Type": "application/json"})
    text = connection.getresponse().read()
    answer: dict[str, Any] = json.loads(text.rpartition(b"data: ")[2])
    return answer


@contextmanager
def serving_over_http(mode: str = "echo", log: Path | None = None) -> Iterator[Listening]:
    """Run the server for the block."""
    command = [sys.executable, "-m", SERVER, mode, *([str(log)] if log else ())]
    with _running(command, {}) as process:
        assert process.stdout is not None
        yield Listening(process, int(process.stdout.readline()))


@contextmanager
def recording_over_http(
    server_port: int, environment: Mapping[str, str], *options: str
) -> Iterator[Listening]:
    """Run the recorder before the server at a port, for the block."""
    where = ["--upstream", f"http://127.0.0.1:{server_port}/", "--listen", "127.0.0.1:0"]
    command = [sys.executable, "-m", "tooltrail", "mcp", *where, *options]
    with _running(command, environment) as process:
        assert process.stderr is not None
        said = process.stderr.readline().decode()
        address = re.search(r"http://127\.0\.0\.1:(\d+)/", said)
        assert address, said
        yield Listening(process, int(address[1]))


@contextmanager
def _running(
    command: list[str], environment: Mapping[str, str]
) -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, **environment},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE_SECONDS)
