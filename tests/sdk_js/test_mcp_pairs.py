"""Clients and servers of MCP in two languages: a call that both record is one call.

Each pair runs with the real packages, in two processes, over both transports. The client is
`near`, the server `far`, in `sdk-js/test/frameworks/mcp` and `sdk/tests/integrations/`.
"""

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sdk.tests.integrations.calls import HERE, RecordedCall, command_in_environment
from sdk.tests.support.ingest_key import KEY
from sdk.tests.support.ingest_server import serving
from tests.support.installation import clean_environment
from tests.support.js_frameworks import TIMEOUT_S, calls_of, install

pytestmark = pytest.mark.slow

OTHER_KEY = KEY.replace("secret", "other")
VALUES: list[Any] = [
    *(1, 2.0, -0.0, 0.1, 1e21, 1e-7, 123456789012345678, True, None, "", [], {}),
    'é\u2028 "quoted" \\ \n\t\x7f',
    {"b": 1.50, "a": {"€": None, "\uffee": 1, "😀": [2, {"z": 3, "B": 4}]}},
]
"""What the two languages read and write differently, unless they take care."""
SIDES = ("js", "mcp", "fastmcp")  # what records a client or a server
PAIRS = [(near, far) for near in SIDES for far in SIDES]


def command(js_sdk: Path, side: str, script: str) -> list[str]:
    if side == "js":
        folder = js_sdk / "test" / "frameworks" / "mcp"
        install(folder)
        return ["node", str(folder / f"{script}.mjs")]
    return command_in_environment(side, HERE / side / f"{script}.py")


@contextmanager
def far_over_http(command: list[str], environment: dict[str, str]) -> Iterator[str]:
    """Run a server. Yields its address when it answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        command, env=environment | {"MCP_PORT": str(port)}, stdin=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            assert process.poll() is None, "the server has ended"
            assert time.monotonic() < deadline, "the server does not answer"
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait(TIMEOUT_S)


def run(
    js_sdk: Path,
    tmp_path: Path,
    pair: tuple[str, str],
    transport: str,
    keys: tuple[str, str] = (KEY, KEY),
) -> list[RecordedCall]:
    """Run a pair; without a key a side records nothing."""
    near, far = (command(js_sdk, *each) for each in zip(pair, ("near", "far"), strict=True))
    with serving() as server:
        near_environment, far_environment = (
            clean_environment(
                TOOLTRAIL_URL=server.url if key else "",
                TOOLTRAIL_API_KEY=key,
                TOOLTRAIL_SPOOL_DIR=str(tmp_path / name),
                TOOLTRAIL_EXIT_TIMEOUT="20",
            )
            for key, name in zip(keys, ("near", "far"), strict=True)
        )
        asked = {
            "MCP_COMMAND": json.dumps(far),
            "MCP_ENVIRONMENT": json.dumps(far_environment),
            "MCP_VALUES": json.dumps(VALUES),
        }
        if transport == "http":
            with far_over_http(far, far_environment) as url:
                run_near(near, near_environment | asked | {"MCP_URL": url})
        else:
            run_near(near, near_environment | asked)
            expected = len(VALUES) if keys[1] else 0
            server.wait(  # the end of the server, which nobody else waits for
                lambda: sum(e.get("tool_name") == "inner" for e in server.events) >= 2 * expected
            )
        return calls_of(server)


def run_near(command: list[str], environment: dict[str, str]) -> None:
    ran = subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert ran.returncode == 0, ran.stderr[-4000:]
    assert "tooltrail: an event" not in ran.stderr, ran.stderr


@pytest.mark.generated(2)
@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_call_that_both_record_is_one_call(
    js_sdk: Path, tmp_path: Path, pair: tuple[str, str], transport: str
) -> None:
    calls = run(js_sdk, tmp_path, pair, transport)
    echoes = of("echo", calls)
    assert doubles([call.start["args"]["value"] for call in echoes]) == doubles(VALUES)
    assert doubles([call.data["value"] for call in echoes]) == doubles(VALUES)
    assert {call.start["trace_id"] for call in calls} == {"trace-1"}
    inner = of("inner", calls)
    assert sorted(str(call.parent) for call in inner) == sorted(call.id for call in echoes)
    [boom] = of("boom", calls)
    assert boom.state == "failed"
    assert boom.start["context"]["agent"] == "concierge", "the client's record"
    assert boom.ends[0]["mcp"]["server"]["name"] == "far"
    assert len(calls) == 2 * len(VALUES) + 1
    assert [len(call.ends) for call in calls] == [1] * len(calls)


@pytest.mark.generated(1)
@pytest.mark.parametrize(
    ("keys", "records"),
    [((KEY, OTHER_KEY), 2), ((KEY, ""), 1), (("", KEY), 1)],
    ids=["two keys", "server unrecorded", "client unrecorded"],
)
@pytest.mark.parametrize("pair", [("js", "mcp"), ("mcp", "js")], ids="-".join)
def test_peers_that_do_not_share_a_record_work_as_before(
    js_sdk: Path, tmp_path: Path, pair: tuple[str, str], keys: tuple[str, str], records: int
) -> None:
    calls = run(js_sdk, tmp_path, pair, "stdio", keys)
    assert len(of("echo", calls)) == records * len(VALUES)
    assert len(of("inner", calls)) == (len(VALUES) if keys[1] else 0)
    servers = {call.id for call in of("echo", calls) if call.start.get("context") is None}
    assert {call.parent for call in of("inner", calls)} == servers


def doubles(value: Any) -> Any:
    """The same with the numbers of JavaScript."""
    return json.loads(json.dumps(value), parse_int=float)


def of(tool: str, calls: list[RecordedCall]) -> list[RecordedCall]:
    return [call for call in calls if call.start["tool_name"] == tool]
