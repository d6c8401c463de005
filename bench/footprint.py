"""What a running installation costs: seconds to the first answer, memory when idle, disk.

    uv run bench/footprint.py [--starts 3] [--idle 20] [--installed]

Starts `uv run manage.py up --demo` in a folder of its own, as a new user would: first with an
empty folder, then again. Memory is the proportional set size (PSS) of all processes, including uv
and PostgreSQL but not the demo executor (Linux: /proc/*/smaps_rollup). It is read after the demo's
day of history is stored. `--installed` also makes a fresh environment with `uv sync --no-dev` and
adds up the sizes of its files.
"""

import argparse
import json
import os
import signal
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parent.parent
TRICKLE = 60
"""More calls than the demo makes in one interval once its history is stored."""


def start(var: Path) -> tuple[subprocess.Popen[str], dict[str, str], float]:
    """Start everything; returns the process, its announcement, and the seconds until then."""
    began = time.monotonic()
    process = subprocess.Popen(
        ["uv", "run", "manage.py", "up", "--demo", "--json", "--port", "0"],
        cwd=ROOT,
        env=os.environ | {"TOOLTRAIL_VAR": str(var)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    facts: dict[str, str] = json.loads(process.stdout.readline())
    return process, facts, time.monotonic() - began


def settle(facts: dict[str, str], seconds: float) -> int:
    """Wait for an interval of `seconds` with hardly any new calls; returns the number of calls."""
    request = urllib.request.Request(
        facts["url"] + "/api/v1/summary?range=24h",
        headers={"Authorization": f"Bearer {facts['api_key']}"},
    )
    known, calls = -TRICKLE, 0
    while calls - known >= TRICKLE:
        time.sleep(seconds)
        with urllib.request.urlopen(request) as answer:
            known, calls = calls, json.load(answer)["calls"]
    return calls


def processes(parent: int, var: Path) -> list[psutil.Process]:
    """All processes of an installation except the demo executor and its children."""
    running = [psutil.Process(parent), *psutil.Process(parent).children(recursive=True)]
    postmaster = int((var / "postgres/data/postmaster.pid").read_text().split("\n", 1)[0])
    running += [psutil.Process(postmaster), *psutil.Process(postmaster).children()]
    demo = [process for process in running if "audit.demo" in process.cmdline()]
    excluded = {child.pid for process in demo for child in process.children(recursive=True)}
    excluded |= {process.pid for process in demo}
    return [process for process in running if process.pid not in excluded]


def pss_mib(pid: int) -> float:
    """A process's proportional set size in MiB."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise ValueError(f"no PSS for process {pid}")


def name_of(process: psutil.Process) -> str:
    """A short name for a process."""
    command = " ".join(process.cmdline())
    for mark, name in {
        "config.process.supervise": "supervisor",
        "config.process.web_server": "web server",
        "procrastinate worker": "worker",
        "while read": "guardian",
        "multiprocessing": "web server",
        "postgres": "database",
    }.items():
        if mark in command:
            return name
    return process.name()


def installed_mib() -> float:
    """MiB on disk of what runs: without the packages of tests, and without extras."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            ["uv", "sync", "--quiet", "--no-dev", "--compile-bytecode"],
            cwd=ROOT,
            env=os.environ | {"UV_PROJECT_ENVIRONMENT": f"{folder}/venv", "UV_LINK_MODE": "copy"},
            check=True,
        )
        files = (path for path in Path(folder).rglob("*") if not path.is_symlink())
        return sum(path.stat().st_blocks * 512 for path in files) / 2**20


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--idle", type=float, default=20, help="idle seconds before memory is read")
    parser.add_argument("--installed", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tooltrail-bench-") as folder:
        var = Path(folder) / "var"
        for number in range(options.starts):
            process, facts, seconds = start(var)
            kind = "first start, new database" if number == 0 else "later start"
            print(f"{kind:28} {seconds:6.1f} s to the first 200")
            if number == options.starts - 1:
                calls = settle(facts, options.idle)
                by_name: dict[str, float] = {}
                for each in processes(process.pid, var):
                    name = name_of(each)
                    by_name[name] = by_name.get(name, 0.0) + pss_mib(each.pid)
                for name, size in sorted(by_name.items(), key=lambda item: -item[1]):
                    print(f"  {name:26} {size:6.1f} MiB PSS")
                label = f"idle, {calls} calls"
                print(f"{label:28} {sum(by_name.values()):6.1f} MiB PSS")
            everything = processes(process.pid, var)
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            process.wait()
            seconds = time.monotonic() - began
            left = [one for one in everything if one.is_running() and one.status() != "zombie"]
            print(f"{'stopped':28} {seconds:6.1f} s, {len(left)} processes left")
    if options.installed:
        print(f"{'installed':28} {installed_mib():6.1f} MiB on disk, byte code included")


if __name__ == "__main__":
    main()
