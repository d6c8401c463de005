"""The environment in which the real frameworks run, made when first needed.

They are large, and they pin versions that the server cannot have (docs/adr/0004). The folder
lies within the running environment and is named after the pins, so that new ones make a new one.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

FRAMEWORKS = Path(__file__).parent / "frameworks"
FIXTURES = Path(__file__).parent / "fixtures"
"""What the frameworks sent when captured (tests/support/otlp/capture.py)."""
EVERYTHING = "@modelcontextprotocol/server-everything@2026.8.31"
_REQUIREMENTS = FRAMEWORKS / "requirements.txt"
_TIMEOUT_S = 600


@cache
def frameworks_python() -> str:
    """The interpreter that has the frameworks. Fails the test if they cannot be installed."""
    digest = hashlib.sha256(_REQUIREMENTS.read_bytes()).hexdigest()[:12]
    folder = Path(sys.prefix) / f"otlp-frameworks-{digest}"
    python = folder / "bin" / "python"
    with _alone(folder):
        if not (folder / "complete").exists():
            _make(folder, python)
    return str(python)


def _make(folder: Path, python: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    uv = os.environ.get("UV") or shutil.which("uv")
    if uv is None or not _install(
        [uv, "venv", "--quiet", "--python", sys.executable, str(folder)],
        [uv, "pip", "install", "--quiet", "--python", str(python), "-r", str(_REQUIREMENTS)],
    ):
        shutil.rmtree(folder, ignore_errors=True)
        _install(
            [sys.executable, "-m", "venv", str(folder)],
            [str(python), "-m", "pip", "install", "--quiet", "-r", str(_REQUIREMENTS)],
            is_last_try=True,
        )
    (folder / "complete").touch()


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process at a time makes a folder: those of `pytest -n 2` share it."""
    with folder.with_name(f"{folder.name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@cache
def npm_server() -> str:
    """The command of a server from npm, installed beside the frameworks."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.skip("a server from npm needs Node.js")
    folder = Path(sys.prefix) / "mcp-servers" / EVERYTHING.rpartition("@")[2]
    index = folder / "node_modules" / EVERYTHING.rpartition("@")[0] / "dist" / "index.js"
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder):
        if not index.exists():
            command = [npm, "install", "--no-fund", "--no-audit", "--prefix", str(folder)]
            subprocess.run([*command, EVERYTHING], check=True, capture_output=True, timeout=300)
    return f"{node} {index} stdio"


def run_framework(script: str, endpoint: str, headers: str) -> str:
    """Run a script of `frameworks`, configured by what its documentation page says to set.

    Returns what it printed. Fails with its errors if the exit code is not 0.
    """
    name, *arguments = script.split()
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("OTEL_")},
        "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
        "OTEL_EXPORTER_OTLP_HEADERS": headers,
    }
    completed = subprocess.run(
        [frameworks_python(), str(FRAMEWORKS / name), *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    assert "Failed to export" not in completed.stderr, completed.stderr
    return completed.stdout


def _install(*commands: list[str], is_last_try: bool = False) -> bool:
    for command in commands:
        try:
            completed = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_S,
                check=False,
            )
            reason = completed.stderr.strip().rsplit("\n", 1)[-1] if completed.returncode else None
        except (OSError, subprocess.TimeoutExpired) as error:
            reason = str(error)
        if reason is not None and is_last_try:
            pytest.fail(
                f"the OTLP tests need their frameworks; `{' '.join(command)}` failed: {reason}"
            )
        if reason is not None:
            return False
    return True
