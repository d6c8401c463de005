"""The recorder before a server at a URL, as a process: kills, floods, and hostile servers."""

import random
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest

from sdk.tests.support.mcp_client import PATIENCE_SECONDS, recorder_environment, spooled
from sdk.tests.support.mcp_http_client import (
    Listening,
    call,
    call_text,
    recording_over_http,
    serving_over_http,
)

UNREACHABLE = "http://127.0.0.1:9"
MEMORY_MIB = 64
FORMS = ("/json", "/sse")
MODES = ("long", "values", "secrets", "objects", "endless", "dies", "invalid")
ENDLESS_BYTES = 100_000_000

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
    pytest.mark.slow,
    pytest.mark.sampled("mcp recorder over http", 2),
]


@contextmanager
def recorded(tmp_path: Path, mode: str, *options: str) -> Iterator[tuple[Listening, Listening]]:
    """A server of a mode, and a recorder before it."""
    environment = recorder_environment(UNREACHABLE, tmp_path / "spool")
    with (
        serving_over_http(mode, tmp_path / "log") as server,
        recording_over_http(server.port, environment, *options) as recorder,
    ):
        yield server, recorder


def of_type(tmp_path: Path, kind: str) -> list[dict[str, Any]]:
    return [each for each in spooled(tmp_path / "spool") if each["type"] == kind]


@pytest.mark.generated(len(MODES), kind="mode")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("mode", MODES)
def test_hostile_server_takes_no_memory_and_its_bytes_pass(
    tmp_path: Path, mode: str, form: str
) -> None:
    with recorded(tmp_path, mode) as (server, recorder):
        sizes = [size_of_answer(recorder, form, number) for number in range(3)]
        if mode not in ("endless", "dies"):
            assert sizes == [size_of_answer(server, form, number) for number in range(3)]
        peak = recorder.peak_mib

    assert peak < MEMORY_MIB
    starts = of_type(tmp_path, "toolExecutionStart")
    ends = of_type(tmp_path, "toolExecutionEnd")
    if mode == "endless":
        assert (len(starts), len(ends)) == (3, 0), "an earlier client may come back for it"
    elif mode == "invalid":
        assert (len(starts), len(ends)) == (3, 3)
        gaps = of_type(tmp_path, "gap")
        assert {each["reason"] for each in gaps} == {"unreadable-message"}
        assert sum(each["count"] for each in gaps) == 3
        assert all(each["is_error"] for each in ends)
    elif mode == "dies":
        assert min(sizes) < ENDLESS_BYTES
        assert all(each["is_error"] for each in ends)
    else:
        assert (len(starts), len(ends)) == (3, 3)
    if mode in ("secrets", "objects"):
        assert all(each["output"]["data"] is not None for each in ends), "it was searched"
    if mode in ("long", "values"):
        assert all(each["removed"][0]["reason"].startswith("too long: ") for each in ends)


def size_of_answer(target: Listening, form: str, number: int) -> int:
    """How many bytes come, until the end or too many."""
    connection, size = target.connect(), 0
    with suppress(OSError, HTTPException):
        connection.request("POST", form, call_text(number))
        answer = connection.getresponse()
        while size < ENDLESS_BYTES * 2 and (part := answer.read1(1 << 20)):
            size += len(part)
    connection.close()
    return size


@pytest.mark.parametrize("mode", ["echo", "objects", "endless"])
def test_flood_of_clients_takes_no_memory(tmp_path: Path, mode: str) -> None:
    """As many at a time as are served; the next one is told so, until one has gone."""
    clients = 32
    with recorded(tmp_path, mode) as (_, recorder):
        held = [recorder.connect() for _ in range(clients)]
        for connection in held:
            connection.connect()
        wait_until(lambda: is_refused(recorder))

        def flood(number: int) -> None:
            held[number].request("POST", "/sse", call_text(number))
            answer, size = held[number].getresponse(), 0
            while size < ENDLESS_BYTES // 10 and (part := answer.read1(1 << 16)):
                size += len(part)
            held[number].close()

        with ThreadPoolExecutor(clients) as pool:
            list(pool.map(flood, range(clients)))
        wait_until(lambda: not is_refused(recorder))
        peak = recorder.peak_mib

    assert peak < MEMORY_MIB
    assert len(of_type(tmp_path, "toolExecutionStart")) == clients


def is_refused(recorder: Listening) -> bool:
    connection = recorder.connect()
    try:
        connection.request("OPTIONS", "/json")
        return connection.getresponse().status == 503
    except OSError:  # the refusal came while we wrote
        return True
    finally:
        connection.close()


def wait_until(fulfilled: Any) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not fulfilled():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_kill_ends_the_session_and_loses_no_call(
    pytestconfig: pytest.Config, tmp_path: Path
) -> None:
    """What a client got is recorded, and what the server got, whenever the kill comes."""
    draw = random.Random(0)
    for number in range(200 if pytestconfig.getoption("full", default=False) else 6):
        folder = tmp_path / str(number)
        folder.mkdir()
        with recorded(folder, "echo") as (_, recorder):
            answered: set[int] = set()
            killer = threading.Timer(draw.random() * 0.2, recorder.process.kill)
            with ThreadPoolExecutor(3) as pool:
                ended = [
                    pool.submit(call_until_the_end, recorder, form, each, answered)
                    for each, form in enumerate(["/json", "/sse", "/json"])
                ]
                killer.start()
                for client in ended:
                    client.result(PATIENCE_SECONDS)
            assert recorder.process.wait(PATIENCE_SECONDS) == -signal.SIGKILL
        begun = {each["args"]["n"] for each in of_type(folder, "toolExecutionStart")}
        ends = of_type(folder, "toolExecutionEnd")
        returned = {each["output"]["data"]["structuredContent"]["n"] for each in ends}
        seen = {int(line) for line in (folder / "log").read_text().split()}
        assert answered <= returned, "a client has an answer that is not recorded"
        assert seen <= begun, "the server has a call that is not recorded"
        assert returned <= begun


def call_until_the_end(recorder: Listening, form: str, first: int, answered: set[int]) -> None:
    """Make calls until the connection ends, as it would with a server that was killed."""
    connection = recorder.connect()
    with suppress(OSError, HTTPException, ValueError):
        for number in range(first, 1_000_000, 3):
            answered.add(call(connection, form, number)["id"])
    connection.close()
