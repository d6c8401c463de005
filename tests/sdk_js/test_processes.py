"""Executors in Python and JavaScript with one spool: killed at any moment, none loses a call."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sdk.tests.support.ingest_key import KEY
from sdk.tests.support.ingest_server import Server, serving

pytestmark = pytest.mark.slow

PYTHON = """
import sys, time
from tooltrail import Trail
trail = Trail()
@trail.tool(version="1")
def echo(n):
    return n
for n in range(int(sys.argv[1])):
    echo(n)
    print(n, flush=True)
    time.sleep(0.001)
"""
# `writeSync`, because what is printed must have been recorded before.
JAVASCRIPT = """
const {{ writeSync }} = require("node:fs");
const {{ Trail }} = require({sdk!r});
const trail = new Trail();
const echo = trail.tool(async function echo({{ n }}) {{ return n; }});
(async () => {{
  for (let n = 0; n < Number(process.argv[1]); n++) {{
    await echo({{ n }});
    writeSync(1, `${{n}}\\n`);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }}
}})();
"""

Start = Callable[[str, int], subprocess.Popen[str]]


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


@pytest.fixture
def start(server: Server, tmp_path: Path, js_sdk: Path) -> Start:
    """Start an executor, `python` or `node`, that makes so many calls."""
    javascript = JAVASCRIPT.format(sdk=str(js_sdk / "dist" / "index.js"))
    commands = {"python": [sys.executable, "-c", PYTHON], "node": ["node", "-e", javascript, "--"]}
    variables = {
        **os.environ,
        "TOOLTRAIL_URL": server.url,
        "TOOLTRAIL_API_KEY": KEY,
        "TOOLTRAIL_SPOOL_DIR": str(tmp_path),
        "TOOLTRAIL_EXIT_TIMEOUT": "60",
    }

    def start(language: str, calls: int) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*commands[language], str(calls)], env=variables, stdout=subprocess.PIPE, text=True
        )

    return start


def kill_after(executor: subprocess.Popen[str], calls: int) -> int:
    """Kill an executor after so many calls. Returns how many have returned."""
    assert executor.stdout is not None
    for line in executor.stdout:
        if int(line) + 1 >= calls:
            break
    executor.send_signal(signal.SIGKILL)
    rest = executor.stdout.read().rpartition("\n")[0].split()  # its last line may be cut
    executor.stdout.close()
    executor.wait(60)
    return max([calls, *(int(n) + 1 for n in rest)])


def calls_of(server: Server) -> dict[str, set[int]]:
    """The results of the ended calls on the server, by producer."""
    ended: dict[str, set[int]] = {}
    for event in server.events:
        if event["type"] == "toolExecutionEnd":
            ended.setdefault(event["producer_id"], set()).add(event["output"]["data"])
    return ended


@pytest.mark.sampled("executors of two languages", 1)
@pytest.mark.parametrize("heir", ["node", "python"])
def test_killed_executors_of_both_languages_lose_no_call(
    server: Server, start: Start, tmp_path: Path, request: pytest.FixtureRequest, heir: str
) -> None:
    kills = 6 if request.config.getoption("sample") else 100  # with each heir
    returned: dict[int, int] = {}
    running: list[subprocess.Popen[str]] = []
    for _ in range(kills):
        is_down = random.random() < 0.5
        server.plan = (lambda request: (503, {}, {})) if is_down else (lambda request: None)
        # Two at a time, so that they compete for what the last ones left.
        while len(running) < 2:
            running.append(start(random.choice(["node", "python"]), 100_000))
        executor = running.pop(0)
        returned[executor.pid] = kill_after(executor, random.randint(1, 900))
    for executor in running:
        returned[executor.pid] = kill_after(executor, 1)
    server.plan = lambda request: None
    for _ in range(kills):  # each sends for a minute
        start(heir, 1).communicate(timeout=120)
        if not left_in(tmp_path):
            break

    assert left_in(tmp_path) == []
    ended = calls_of(server)
    for pid, count in returned.items():
        [producer] = [name for name in ended if name.split("-")[-2] == str(pid)]
        assert set(range(count)) <= ended[producer], f"a call of {producer} is lost"
    numbers: dict[str, list[int]] = {}
    for event in server.events:
        numbers.setdefault(event["producer_id"], []).append(event["producer_seq"])
    for gap in server.gaps.values():  # at most the line that was being written
        numbers[gap["producer_id"]] += range(gap["from_seq"], gap["to_seq"] + 1)
    assert all(sorted(each) == list(range(len(each))) for each in numbers.values())
    assert sum(gap["count"] for gap in server.gaps.values()) <= kills + 2


def left_in(spool_dir: Path) -> list[Path]:
    """The event files in a spool."""
    return [
        path for path in spool_dir.glob("*/*/**/*") if path.suffix in (".open", ".batch", ".slim")
    ]
