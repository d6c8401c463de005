"""The recorder between two processes: it passes each byte, and records before it passes."""

import json
import random
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from sdk.tests.support.ingest_server import serving
from sdk.tests.support.mcp_client import (
    Piped,
    piped,
    recorder_command,
    recorder_environment,
    server_command,
    spooled,
    wait_until_ended,
)
from sdk.tests.support.mcp_http_client import call, recording_over_http, serving_over_http

UNREACHABLE = "http://127.0.0.1:9"
MEMORY_MIB = 64
INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "clientInfo": {"name": "tests", "version": "2"},
    "capabilities": {},
}
CALL = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{}}}\n'


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return recorder_environment(UNREACHABLE, tmp_path / "spool")


def of_type(tmp_path: Path, kind: str) -> list[dict[str, Any]]:
    return [each for each in spooled(tmp_path / "spool") if each["type"] == kind]


@pytest.mark.slow
def test_session_is_recorded_with_both_peers(tmp_path: Path, environment: dict[str, str]) -> None:
    with piped([*recorder_command(), *server_command()], environment) as client:
        client.request(0, "initialize", INITIALIZE)
        assert json.loads(client.read_line())["result"]["serverInfo"]["name"] == "plain"
        client.request(1, "tools/list", {})
        client.read_line()
        assert client.call(2, city="London")["result"]["structuredContent"] == {"city": "London"}
        assert client.rest() == b""
        assert client.process.returncode == 0

    (start,) = of_type(tmp_path, "toolExecutionStart")
    (end,) = of_type(tmp_path, "toolExecutionEnd")
    (definitions,) = of_type(tmp_path, "toolDefinitions")
    assert start["args"] == {"city": "London"}
    assert end["mcp"]["client"] == {"name": "tests", "version": "2"}
    assert end["mcp"]["server"] == definitions["server"] == {"name": "plain", "version": "1.0"}


SCRIPT = b"".join(
    [
        b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"x"}}\n',
        b"\n\r\n \xff\xfe broken\n",
        b'[{"jsonrpc":"2.0","method":"notifications/initialized"}]\n'[1:-2] + b"\r\n",
        b'{"jsonrpc":"2.0",  "id":1,"method":"tools/list","params":{}}\r\n',
        CALL % 2,
        b'{"id":3,"method":"tools/call","params":{"name":"echo","arguments":{"a":"\\ud83d\\ude00"}}}\n',
        b'{"id":4,"method":"tools/call","params":{"name":"echo","arguments":{"z":1.10,"a":1e3}}}',
    ]
)


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--fail-closed"]], ids=["open", "closed"])
def test_bytes_are_those_without_the_recorder(
    environment: dict[str, str], options: list[str]
) -> None:
    script = SCRIPT if not options else SCRIPT.replace(b"\xff\xfe broken", b"")
    answers = []
    for prefix in ([], recorder_command(*options)):
        with piped([*prefix, *server_command("garbage")], environment) as client:
            client.send(script + (b"\n" if options else b""))
            answers.append(client.rest())

    assert answers[0] == answers[1]
    assert answers[0].count(b"not json") == 3


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["pipes", "http"])
def test_secrets_are_in_no_file(
    tmp_path: Path, environment: dict[str, str], transport: str
) -> None:
    secret = {"password": "hunter2", "note": "the token=hunter2 is old"}
    if transport == "pipes":
        with piped([*recorder_command(), *server_command()], environment) as client:
            assert client.call(1, **secret)["result"]["structuredContent"] == secret
            client.rest()
    else:
        with (
            serving_over_http() as server,
            recording_over_http(server.port, environment) as recorder,
        ):
            connection = recorder.connect()
            answer = call(connection, "/json", 1, **secret)["result"]
            assert answer["structuredContent"] == {"n": 1, **secret}
            connection.close()

    files = [each for each in (tmp_path / "spool").rglob("*") if each.is_file()]
    assert of_type(tmp_path, "toolExecutionEnd")
    assert not [each for each in files if b"hunter2" in each.read_bytes()]


@pytest.mark.slow
def test_server_does_not_get_our_key(environment: dict[str, str]) -> None:
    with piped([*recorder_command(), *server_command("environment")], environment) as client:
        seen = client.call(1)["result"]["structuredContent"]

    assert "TOOLTRAIL_API_KEY" not in seen
    assert seen["TOOLTRAIL_URL"] == UNREACHABLE


@pytest.mark.slow
def test_server_that_dies_in_mid_answer_ends_the_session(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    with piped([*recorder_command(), *server_command("dies")], environment) as client:
        client.send(CALL % 1)
        while client.read_some():
            pass
        client.process.wait(60)

        assert bytes(client.received) == b'{"jsonrpc":"2.0","id":1,"result":{"con'
        assert client.process.returncode == 128 + signal.SIGKILL
    (end,) = of_type(tmp_path, "toolExecutionEnd")
    assert end["output"]["error"]["message"] == "the server ended before it answered"
    (gap,) = of_type(tmp_path, "gap")
    assert gap["reason"] == "unreadable-message"


@pytest.mark.slow
def test_command_that_cannot_be_run_is_told_as_a_shell_does(environment: dict[str, str]) -> None:
    with piped([*recorder_command(), "/no/such/server"], environment) as client:
        assert client.process.wait(60) == 127
        assert client.process.stderr is not None
        assert b"/no/such/server: No such file" in client.process.stderr.read()


@pytest.mark.slow
def test_signal_reaches_the_server_and_its_end_is_ours(environment: dict[str, str]) -> None:
    with piped([*recorder_command(), *server_command()], environment) as client:
        client.call(1)
        client.process.send_signal(signal.SIGTERM)

        assert client.process.wait(60) == 128 + signal.SIGTERM


@pytest.mark.slow
@pytest.mark.parametrize("key", ["tt_…", "${TOOLTRAIL_API_KEY}"])
def test_key_that_nobody_has_put_in_does_not_stop_the_server(
    environment: dict[str, str], tmp_path: Path, key: str
) -> None:
    """A printed configuration as it is: calls pass, and wait in the spool."""
    unfinished = environment | {"TOOLTRAIL_API_KEY": key}
    with piped([*recorder_command(), *server_command()], unfinished) as client:
        assert "result" in client.call(1)
        client.rest()
    assert len(of_type(tmp_path, "toolExecutionEnd")) == 1


@pytest.mark.slow
def test_without_a_destination_bytes_pass_unless_closed() -> None:
    off = {"TOOLTRAIL_URL": "", "TOOLTRAIL_API_KEY": ""}
    with piped([*recorder_command(), *server_command()], off) as client:
        assert "result" in client.call(1)
    with piped([*recorder_command("--fail-closed"), *server_command()], off) as client:
        assert client.process.wait(60) == 2


@pytest.mark.slow
def test_fail_closed_answers_calls_that_cannot_be_recorded(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    log = tmp_path / "log"
    full = environment | {"TOOLTRAIL_MAX_BYTES": "1"}
    command = [*recorder_command("--fail-closed"), *server_command("echo", log)]
    with piped(command, full) as client:
        client.request(0, "initialize", INITIALIZE)
        assert "result" in json.loads(client.read_line())
        refused = client.call(1)
        client.send(b'{"broken":\n')
        unread = json.loads(client.read_line())
        client.send(b'{"id":7,"method":"x","params":"' + b"x" * 2_000_000 + b'"}\n')
        long = json.loads(client.read_line())

    assert (refused["id"], refused["error"]["code"]) == (1, -32000)
    assert "not recorded, so not sent" in refused["error"]["message"]
    assert (unread["id"], long["id"]) == (None, 7)
    assert log.read_text() == "0\n"


@pytest.mark.slow
def test_answer_of_ours_does_not_cut_a_line_of_the_server(
    environment: dict[str, str], tmp_path: Path
) -> None:
    full = environment | {"TOOLTRAIL_MAX_BYTES": "1"}
    script = "import sys, time; sys.stdout.write('{\"method\":'); sys.stdout.flush(); "
    script += "sys.stdin.read(); print('\"log\"}', flush=True)"
    with piped([*recorder_command("--fail-closed"), sys.executable, "-c", script], full) as client:
        while bytes(client.received) != b'{"method":':
            client.read_some()
        client.send(CALL % 1)
        first, second = client.rest().splitlines()

    assert json.loads(first) == {"method": "log"}
    assert json.loads(second)["id"] == 1


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.generated(3)
@pytest.mark.parametrize("mode", ["long", "values", "secrets", "objects", "endless", "flood"])
def test_hostile_peer_takes_no_memory_and_its_bytes_pass(
    tmp_path: Path, environment: dict[str, str], mode: str
) -> None:
    flood = 20_000 if mode == "flood" else 3
    with piped([*recorder_command(), *server_command(mode)], environment) as client:
        feeding = threading.Thread(target=feed, args=(client, flood), daemon=True)
        feeding.start()
        passed, ends = 0, 0
        wanted = 1 if mode == "long" else flood
        while ends < wanted and not (mode == "endless" and passed > 300_000_000):
            data = client.read_some()
            assert data
            passed, ends = passed + len(data), ends + data.count(b"\n")
            client.received.clear()
        peak = client.peak_mib
        client.process.kill()
        feeding.join(60)

    assert peak < MEMORY_MIB
    recorded = of_type(tmp_path, "toolExecutionEnd")
    if mode == "long":
        assert recorded[0]["removed"][0]["reason"].startswith("too long: 1000000")
    if mode in ("secrets", "objects"):
        assert all(each["output"]["data"] is not None for each in recorded), "it was searched"
    if mode == "flood":
        assert len(recorded) == flood


def feed(client: Piped, count: int) -> None:
    with suppress(OSError):  # the recorder was killed
        for number in range(count):
            client.send(CALL % number)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc, and PDEATHSIG is Linux")
def test_kill_ends_the_session_and_loses_no_call(
    pytestconfig: pytest.Config, tmp_path: Path
) -> None:
    """What the client got is recorded, and what the server got, whenever the kill comes."""
    draw = random.Random(0)
    for number in range(200 if pytestconfig.getoption("full", default=False) else 6):
        folder = tmp_path / str(number)
        folder.mkdir()
        log = folder / "log"
        environment = recorder_environment(UNREACHABLE, folder / "spool")
        with piped([*recorder_command(), *server_command("echo", log)], environment) as client:
            client.call(0, n=0)
            server = child_of(client.process.pid)
            killer = threading.Timer(draw.random() * 0.2, client.process.kill)
            killer.start()
            answered = call_until_the_end(client)
            killer.join()
            assert client.process.wait(60) == -signal.SIGKILL
            wait_until_ended(server)
        begun = {each["args"]["n"] for each in of_type(folder, "toolExecutionStart")}
        ended = of_type(folder, "toolExecutionEnd")
        returned = {each["output"]["data"]["structuredContent"]["n"] for each in ended}
        seen = {int(line) for line in log.read_text().split()}
        assert answered <= returned, "the client has an answer that is not recorded"
        assert seen <= begun, "the server has a call that is not recorded"
        assert returned <= begun


def call_until_the_end(client: Piped) -> set[int]:
    """Make calls, several at once, until the session ends; those that were answered."""
    answered = set()
    number = 1
    with suppress(OSError, AssertionError):
        while True:
            for each in range(number, number + 3):
                params = {"name": "echo", "arguments": {"n": each}}
                client.request(each, "tools/call", params)
            for _ in range(3):
                answered.add(json.loads(client.read_line())["id"])
            number += 3
    return answered


def child_of(pid: int) -> int:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(children[0])


@pytest.mark.slow
def test_events_reach_the_server(tmp_path: Path) -> None:
    with serving() as server:
        environment = recorder_environment(server.url, tmp_path / "spool")
        with piped([*recorder_command(), *server_command()], environment) as client:
            client.call(1, city="London")
            server.wait(lambda: len(server.events) == 2, timeout=60)
            client.rest()
