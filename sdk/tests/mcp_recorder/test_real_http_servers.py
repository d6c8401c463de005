"""Real servers at URLs behind the recorder, with real clients: the same on both sides of it.

Streamable HTTP, and HTTP with SSE of 2024-11-05, by the packages of Python and npm.
"""

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from sdk.tests.support.http_tee import Tee
from sdk.tests.support.mcp_client import recorder_environment
from sdk.tests.support.mcp_http_client import recording_over_http
from sdk.tests.support.mcp_programs import (
    REAL,
    TIMEOUT_SECONDS,
    WEATHER,
    Case,
    check_record,
    client_words,
    environment_of_programs,
    npm_server,
    package_of,
    with_packages,
)

pytestmark = pytest.mark.slow

EVERYTHING = [["echo", {"message": "hi"}], ["get-sum", {"a": 1, "b": "two"}]]
CASES = {
    "mcp": (Case("mcp==2.3.0", "mcp==2.3.0", WEATHER, "2026-07-28"), "/mcp"),
    "mcp_sse": (Case("mcp==2.3.0", "mcp==2.3.0", WEATHER, "2026-07-28"), "/sse"),
    "mcp_of_june_2025": (Case("mcp==1.13.1", "mcp==1.13.1", WEATHER, "2025-06-18"), "/mcp"),
    "mcp_of_march_2025": (Case("mcp==1.9.4", "mcp==1.9.4", WEATHER, "2025-03-26"), "/mcp"),
    "mcp_of_2024_sse": (Case("mcp==1.2.0", "mcp==1.2.0", WEATHER, "2024-11-05"), "/sse"),
    "fastmcp": (Case("fastmcp==4.1.2", "fastmcp==4.1.2", WEATHER, "2026-07-28"), "/mcp"),
    "fastmcp_sse": (Case("fastmcp==4.1.2", "fastmcp==4.1.2", WEATHER, "2025-11-25"), "/sse"),
    "npm_everything": (Case("sdk", "everything", EVERYTHING, "2025-11-25"), "/mcp"),
    "npm_everything_sse": (Case("sdk", "everything", EVERYTHING, "2025-11-25"), "/sse"),
}


@contextmanager
def serving(server: str, path: str) -> Iterator[int]:
    """Run a server for the block. Yields its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    if server == "everything":
        words = [*npm_server(server), "sse" if path == "/sse" else "streamableHttp"]
    else:
        transport = "sse" if path == "/sse" else "http"
        script = [str(REAL / "weather.py"), package_of(server), transport, str(port)]
        words = [*with_packages(server), *script]
    process = subprocess.Popen(
        words,
        env=environment_of_programs() | {"PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        wait_until_open(port, process)
        yield port
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 9)  # uv has a child
        process.wait(TIMEOUT_SECONDS)


def wait_until_open(port: int, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError("the server does not listen")


@pytest.mark.generated(1)
@pytest.mark.parametrize("name", CASES)
def test_real_session_is_the_same_on_both_sides_and_is_recorded(name: str, tmp_path: Path) -> None:
    case, path = CASES[name]
    calls = json.dumps(case.calls)
    environment = recorder_environment("http://127.0.0.1:9", tmp_path / "spool")
    with (
        serving(case.server, path) as port,
        Tee(port).running() as inner,
        recording_over_http(inner.port, environment) as recorder,
        Tee(recorder.port).running() as outer,
    ):
        ran = subprocess.run(
            [*client_words(case, calls), f"http://127.0.0.1:{outer.port}{path}"],
            env=environment_of_programs(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr[-4000:]
        seen, sent = outer.exchanges(), inner.exchanges()

    assert [each.request for each in seen] == [each.request for each in sent]
    for one, other in zip(seen, sent, strict=True):
        assert one == other or one.is_beginning_of(other)
    made = [each for each in seen if b"tools/call" in each.sent and b" 307 " not in each.status]
    assert len(made) == len(case.calls)
    check_record(case, calls, tmp_path / "spool")
