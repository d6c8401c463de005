"""`manage.py up` with real processes, in a folder of its own."""

import contextlib
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from http import HTTPStatus
from pathlib import Path
from urllib.request import Request, build_opener

import psutil
import pytest

from config.instance import child_environment
from config.postgresql.roles import APP, ROLES, VARIABLES
from config.process.javascript import EXECUTOR
from tests.support.installation import (
    Installation,
    Up,
    announcement,
    clean_environment,
    end,
    new_installation,
    prepared_installation,
    stdout,
    until,
)
from tests.support.installation_requests import status_code


@pytest.fixture
def installation() -> Iterator[Installation]:
    """An installation whose database has the schema."""
    with prepared_installation() as created:
        yield created


@pytest.fixture
def unprepared() -> Iterator[Installation]:
    """An installation without a folder: it was never started."""
    with new_installation() as created:
        yield created


@pytest.fixture
def heeding_hangups() -> Iterator[None]:
    """Do not ignore SIGHUP. Under nohup, children inherit that it is ignored, and so would `up`."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


def calls(facts: dict[str, str]) -> int:
    """How many completed calls the tenant has."""
    request = Request(
        facts["url"] + "/api/v1/summary?range=24h",
        headers={"Authorization": f"Bearer {facts['api_key']}"},
    )
    with build_opener().open(request) as answer:
        return int(json.load(answer)["calls"])


@pytest.mark.slow
@pytest.mark.sampled("running installation", 1)
def test_second_start_keeps_the_data_and_prints_the_same_credentials(
    installation: Installation,
) -> None:
    first = installation.up("--json", "--dev-tenant", "Big Co")
    facts = announcement(first)
    assert set(facts) == {"url", "user", "password", "api_key", "tenant_id"}
    assert status_code(facts["url"] + "/login") == HTTPStatus.OK
    assert calls(facts) == 0
    assert "already running" in installation.refusal()
    assert end(first) == 0
    assert installation.processes() == []

    # As after a power failure: the pid belongs to another process by now.
    (installation.postgres.data / "postmaster.pid").write_text(f"{os.getpid()}\n")
    second = installation.up("--json", "--dev-tenant", "Big Co")
    again = announcement(second)
    assert {**again, "url": ""} == {**facts, "url": ""}
    assert calls(again) == 0
    assert end(second, signal.SIGINT) == 0
    assert installation.processes() == []


@pytest.mark.slow
@pytest.mark.sampled("running installation", 1)
def test_printed_example_call_works_and_a_second_start_keeps_the_database(
    unprepared: Installation, heeding_hangups: None
) -> None:
    def announced(process: Up) -> list[str]:
        lines: list[str] = []
        while not lines or "Ctrl-C" not in lines[-1]:
            line = stdout(process).readline()
            assert line, unprepared.errors.read_text()
            lines.append(line.strip())
        return lines

    process = unprepared.up("--dev-tenant", "acme")
    lines = announced(process)
    output = unprepared.errors.read_text()
    assert f"creating the database in {unprepared.postgres.root}" in output
    environment = dict(
        line.removeprefix("export ").split("=", 1) for line in lines if line.startswith("export ")
    )
    command = next(line for line in lines if line.startswith("uv run "))
    subprocess.run(
        [sys.executable, *shlex.split(command)[3:]],
        env=clean_environment(
            **environment, TOOLTRAIL_SPOOL_DIR=str(unprepared.var.parent / "spool")
        ),
        check=True,
    )
    facts = {"url": environment["TOOLTRAIL_URL"], "api_key": environment["TOOLTRAIL_API_KEY"]}
    assert calls(facts) == 1
    assert end(process, signal.SIGHUP) == 0
    assert unprepared.processes() == []
    process = unprepared.up("--dev-tenant", "acme")
    url = next(line for line in announced(process) if line.startswith("export TOOLTRAIL_URL="))
    output = unprepared.errors.read_text()
    assert f"starting the database in {unprepared.postgres.root}" in output
    assert "creating the database" not in output
    assert calls(facts | {"url": url.partition("=")[2]}) == 1
    assert end(process) == 0


@pytest.mark.slow
@pytest.mark.sampled("running installation", 1)
def test_demo_records_calls_and_a_kill_leaves_no_processes(installation: Installation) -> None:
    process = installation.up("--json", "--demo")
    facts = announcement(process)
    until(lambda: calls(facts))
    assert len(installation.processes()) > 4
    assert list((installation.var / "spool").iterdir())
    process.kill()
    process.wait()
    until(lambda: not installation.processes())

    again = installation.up("--json", "--demo")
    assert calls(announcement(again)) > 0
    assert end(again) == 0
    assert installation.processes() == []


@pytest.mark.slow
@pytest.mark.sampled("running installation", 1)
def test_demo_in_javascript_records_calls_and_ends_with_the_others(
    installation: Installation,
) -> None:
    process = installation.up("--json", "--demo", "--js")
    facts = announcement(process)

    def calls_of_scout() -> list[dict[str, str]]:
        request = Request(
            facts["url"] + "/api/v1/calls?q=agent:release_scout",
            headers={"Authorization": f"Bearer {facts['api_key']}"},
        )
        with build_opener().open(request) as answer:
            found: list[dict[str, str]] = json.load(answer)["items"]
            return found

    until(lambda: any(each["tool_name"] == "survey_folder" for each in calls_of_scout()))
    assert installation.processes(str(EXECUTOR))
    assert end(process) == 0
    assert installation.processes() == []
    assert "demo executor in JavaScript exited" not in installation.errors.read_text()


@pytest.mark.slow
def test_demo_in_javascript_says_what_is_missing(unprepared: Installation, tmp_path: Path) -> None:
    assert "--js needs --demo" in unprepared.refusal("--js")
    assert "`node` was not found" in unprepared.refusal("--demo", "--js", PATH=str(tmp_path))
    node = tmp_path / "node"
    node.write_text("#!/bin/sh\necho v18.20.1\n")
    node.chmod(0o755)
    old = unprepared.refusal("--demo", "--js", PATH=f"{tmp_path}:/bin")
    assert "--js needs Node 20.15 or newer, with npm: `node` is v18.20.1" in old


@pytest.mark.slow
@pytest.mark.sampled("running installation", 1)
def test_dead_processes_are_restarted_and_end_with_the_supervisor(
    installation: Installation,
) -> None:
    process = installation.up("--json", "--dev-tenant", "acme")
    facts = announcement(process)
    for name, word in (("web server", "config.process.web_server"), ("worker", "procrastinate")):
        old = until(partial(installation.processes, word))
        min(old, key=psutil.Process.create_time).kill()
        if name == "web server":
            assert _answers(facts["url"]), "its web processes went with it"
        until(partial(_others, installation, word, {one.pid for one in old}))
        until(partial(_are_gone, installation, word, {one.pid for one in old}))
        output = f"the {name} exited with signal SIGKILL; restarting it"
        assert output in installation.errors.read_text()
    postmaster = installation.postgres.running_pid()
    assert postmaster is not None
    os.kill(postmaster, signal.SIGKILL)
    until(lambda: installation.postgres.running_pid() not in (None, postmaster))
    assert "the database exited; restarting it" in installation.errors.read_text()
    until(lambda: _answers(facts["url"]))

    process.kill()
    process.wait()
    until(lambda: not installation.processes())


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.sampled("running installation", 1)
def test_web_processes_hold_only_the_url_of_their_role(installation: Installation) -> None:
    process = installation.up("--json", "--demo")
    announcement(process)
    worker = until(partial(installation.processes, "procrastinate"))[0]
    demo = until(partial(installation.processes, "audit.demo"))[0]
    web = installation.processes("config.process.web_server")
    assert len(web) > 1, "the server and its forked processes"
    kept = json.loads((installation.var / "secrets.json").read_text())
    owner, application, keeper = (kept[role].encode() for role in ROLES)
    for each in web:
        environ, memory = (_read_proc(each.pid, name) for name in ("environ", "mem"))
        assert application in environ
        assert application in memory
        for password in (owner, keeper):
            assert password not in environ
            assert password not in memory
    until(lambda: owner in _read_proc(worker.pid, "mem"))  # once it has read its settings
    assert not any(kept[role].encode() in _read_proc(demo.pid, "environ") for role in ROLES)
    completed = subprocess.run(
        [sys.executable, "-c", _CONNECTIONS],
        env=web[-1].environ(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(completed.stdout) == {"default": APP}
    assert end(process) == 0


_CONNECTIONS = """
import json
from config.settings import DATABASES
print(json.dumps({alias: database["USER"] for alias, database in DATABASES.items()}))
"""


def _read_proc(pid: int, name: str) -> bytes:
    """A process's environment, or all of its memory that can be read."""
    folder = Path("/proc") / str(pid)
    if name != "mem":
        return (folder / name).read_bytes()
    parts = []
    with (folder / "mem").open("rb", buffering=0) as memory:
        for line in (folder / "maps").read_text().splitlines():
            place, access, *_ = line.split()
            first, last = (int(number, 16) for number in place.split("-"))
            if access.startswith("rw"):
                with contextlib.suppress(OSError):  # mappings of the kernel cannot be read
                    memory.seek(first)
                    parts.append(memory.read(last - first))
    return b"".join(parts)


@pytest.mark.parametrize("ending", ["", "_FILE"])
def test_child_environment_contains_only_the_url_of_its_role(
    ending: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for variable in VARIABLES:
        (tmp_path / variable).write_text(f"postgresql://{variable}@/x")
        monkeypatch.delenv(variable, raising=False)
        value = str(tmp_path / variable) if ending else f"postgresql://{variable}@/x"
        monkeypatch.setenv(variable + ending, value)
    monkeypatch.setenv("TOOLTRAIL_SECRET_KEY" + ending, str(tmp_path / "DATABASE_URL"))
    both = {f"DATABASE_URL{ending}", f"TOOLTRAIL_SECRET_KEY{ending}"}
    names = (*VARIABLES, "TOOLTRAIL_SECRET_KEY")
    watched = {f"{name}{each}" for name in names for each in ("", "_FILE")}
    assert watched & child_environment(APP).keys() == both
    assert not watched & child_environment(None).keys()


def _are_gone(installation: Installation, word: str, pids: set[int]) -> bool:
    return pids.isdisjoint(one.pid for one in installation.processes(word))


def _others(installation: Installation, word: str, known: set[int]) -> set[int]:
    return {one.pid for one in installation.processes(word)} - known


def _answers(url: str) -> bool:
    try:
        return status_code(url + "/readyz") == HTTPStatus.OK
    except OSError:
        return False


@pytest.mark.slow
def test_interrupted_start_leaves_no_processes(unprepared: Installation) -> None:
    process = unprepared.up("--json")
    until(lambda: unprepared.postgres.running_pid())
    assert end(process, signal.SIGINT) == 128 + signal.SIGINT
    assert unprepared.processes() == []


@pytest.mark.slow
@pytest.mark.sampled("refused start", 1)
def test_invalid_option_leaves_no_processes(installation: Installation) -> None:
    assert "--dev-tenant ???: not a slug" in installation.refusal("--dev-tenant", "???")
    assert installation.processes() == []


@pytest.mark.slow
@pytest.mark.sampled("refused start", 1)
def test_port_in_use_is_reported(unprepared: Installation) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert f"port {port} is in use" in unprepared.refusal("--port", port)


@pytest.mark.slow
@pytest.mark.sampled("refused start", 1)
def test_unusable_var_folder_is_reported(unprepared: Installation) -> None:
    unprepared.var.write_text("a file where the folder should be")
    assert f"cannot read {unprepared.var}" in unprepared.refusal()
    unprepared.var.unlink()
    unprepared.var.symlink_to("/proc/nowhere")
    assert "cannot write to" in unprepared.refusal()


@pytest.mark.slow
@pytest.mark.sampled("refused start", 1)
def test_unreachable_database_is_reported(unprepared: Installation) -> None:
    output = unprepared.refusal(DATABASE_URL="postgresql://nobody@127.0.0.1:1/none")
    assert output.startswith("CommandError: database: ")


@pytest.mark.slow
@pytest.mark.sampled("refused start", 1)
def test_superuser_connection_is_rejected(unprepared: Installation) -> None:
    owner = os.environ["DATABASE_OWNER_URL"]
    output = unprepared.refusal(DATABASE_URL=owner, DATABASE_OWNER_URL=owner)
    assert "tooltrail_owner bypasses row-level security" in output
