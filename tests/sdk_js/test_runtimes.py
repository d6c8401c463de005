"""The JavaScript SDK, unchanged, on the newest Node, on Bun and on Deno: all from npm."""

import fcntl
import platform
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from sdk.tests.support.ingest_key import KEY
from sdk.tests.support.ingest_server import Server, serving
from tests.support.installation import clean_environment

pytestmark = pytest.mark.slow

TIMEOUT_S = 300
_ARM = platform.machine() in ("aarch64", "arm64")


@dataclass(frozen=True)
class Runtime:
    """A package of npm with a program for this machine, and how it runs a file."""

    package: str
    version: str
    program: str
    options: tuple[str, ...] = ()


RUNTIMES = {
    "node": Runtime(f"node-linux-{'arm64' if _ARM else 'x64'}", "26.10.0", "bin/node"),
    "bun": Runtime(f"@oven/bun-linux-{'aarch64' if _ARM else 'x64'}", "1.4.4", "bin/bun"),
    "deno": Runtime(
        f"@deno/linux-{'arm64' if _ARM else 'x64'}-glibc", "2.9.6", "deno", ("run", "-A")
    ),
}


def command(js_sdk: Path, name: str) -> list[str]:
    """Install a runtime, once for all processes of these tests. Returns its command."""
    runtime = RUNTIMES[name]
    folder = js_sdk / "node_modules" / f".runtime-{name}-{runtime.version}"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            install = ["npm", "install", "--no-package-lock", "--no-audit", "--no-fund"]
            wanted = f"{runtime.package}@{runtime.version}"
            subprocess.run(
                [*install, "--loglevel=error", "--prefix", folder, wanted],
                check=True,
                stdout=subprocess.DEVNULL,
                timeout=TIMEOUT_S,
            )
            (folder / "complete").touch()
    program = folder / "node_modules" / runtime.package / runtime.program
    program.chmod(0o755)
    return [str(program), *runtime.options]


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


def environment(server: Server, spool: Path) -> dict[str, str]:
    return clean_environment(
        TOOLTRAIL_URL=server.url,
        TOOLTRAIL_API_KEY=KEY,
        TOOLTRAIL_SPOOL_DIR=str(spool),
        TOOLTRAIL_EXIT_TIMEOUT="30",
    )


@pytest.mark.generated(1)
@pytest.mark.parametrize("name", RUNTIMES)
def test_runtime_records_nests_and_takes_over_what_a_kill_left(
    server: Server, js_sdk: Path, tmp_path: Path, name: str
) -> None:
    program = [*command(js_sdk, name), str(js_sdk / "test" / "runtimes" / "program.mjs")]
    server.plan = lambda request: (503, {}, {})
    variables = environment(server, tmp_path)
    killed = subprocess.run([*program, "die"], env=variables, timeout=TIMEOUT_S)
    assert killed.returncode == -9
    server.plan = lambda request: None
    ran = subprocess.run(
        [*program, "record"], env=variables, capture_output=True, text=True, timeout=TIMEOUT_S
    )
    assert (ran.returncode, ran.stderr) == (0, "")

    starts = [each for each in server.events if each["type"] == "toolExecutionStart"]
    ends = {each["invocation_id"]: each for each in server.events if "ended_at" in each}
    assert {each["invocation_id"] for each in starts} == set(ends)
    assert not server.gaps
    own = [each for each in starts if each["trace_id"] == "t"]
    assert len(starts) - len(own) == 50, "of the killed program"
    [outer] = [each for each in own if each["tool_name"] == "outer"]
    assert outer["args"] == {"n": 1, "password": "[redacted]"}
    inner = [each for each in own if each["tool_name"] == "inner"]
    assert [each["parent_invocation_id"] for each in inner] == [outer["invocation_id"]] * 2
    [count] = [each for each in own if each["tool_name"] == "count"]
    output = ends[count["invocation_id"]]["output"]
    assert output["data"] == {"items": 3, "first": 1, "last": 3}
    [bad] = [each for each in own if each["tool_name"] == "bad"]
    assert ends[bad["invocation_id"]]["output"]["error"]["message"] == "no"


@pytest.mark.sampled("a runtime's whole suite", 0)
def test_newest_node_passes_all_tests_of_the_sdk(js_sdk: Path) -> None:
    [node] = command(js_sdk, "node")
    tests = sorted(str(path) for path in (js_sdk / "test").glob("*.test.mjs"))
    options = ["--test", "--test-concurrency=1", "--test-timeout=120000"]
    ran = subprocess.run(
        [node, *options, *tests], cwd=js_sdk, capture_output=True, text=True, timeout=900
    )
    assert ran.returncode == 0, ran.stdout[-4000:]
