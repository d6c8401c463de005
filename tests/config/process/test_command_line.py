"""`manage.py` as a program: its version, its errors, and Ctrl-C during startup."""

import importlib.metadata
import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
import tooltrail
from django.conf import settings
from django.core.management import get_commands

from config.openapi import description
from config.process.command_line import INSTEAD, CommandLine
from config.version import VERSION
from tests.support.installation import clean_environment


def _manage(*arguments: str, var: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=settings.BASE_DIR,
        env=clean_environment(TOOLTRAIL_VAR=str(var)),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [("--version",), ("version",), ("up", "--version")])
def test_version_is_printed(arguments: tuple[str, ...], tmp_path: Path) -> None:
    result = _manage(*arguments, var=tmp_path)
    assert result.returncode == 0
    assert result.stdout.startswith(f"Tooltrail {VERSION} (Python 3."), result.stdout


def test_versions_match_the_packages() -> None:
    for folder, version in (("", VERSION), ("sdk", tooltrail.__version__)):
        project = tomllib.loads((settings.BASE_DIR / folder / "pyproject.toml").read_text())
        assert version == project["project"]["version"]
    assert tooltrail.__version__ == importlib.metadata.version("tooltrail")
    assert description()["info"]["version"] == VERSION


@pytest.mark.slow
@pytest.mark.generated(2)
@pytest.mark.parametrize("name", ["flush", "loaddata", "createsuperuser", "startapp", "runserver"])
def test_commands_that_bypass_the_ledger_are_rejected(name: str, tmp_path: Path) -> None:
    result = _manage(name, "--no-input", var=tmp_path)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith(f"tooltrail: manage.py {name} is not available: ")


def test_help_lists_available_commands_only() -> None:
    listed = CommandLine(["manage.py"]).main_help_text(commands_only=True).split()
    shown = set(listed)
    assert len(listed) == len(shown), "no command is listed twice"
    known = get_commands()
    assert {name for name, app in known.items() if app == "config"} <= shown <= set(known)
    assert not shown & set(INSTEAD)
    assert not shown & {"sqlflush", "startproject", "testserver", "dumpdata"}
    assert set(INSTEAD) <= set(known), "INSTEAD names a command that Django does not have"


_INTERRUPTED_IN_CALLBACK = """
import os, signal, sys, weakref
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "config.process.up":
            some = Finder()
            reference = weakref.ref(some, lambda _: os.kill(os.getpid(), signal.SIGINT))
            del some
sys.meta_path.insert(0, Finder())
sys.argv = ["manage.py", "up", "--port", "0"]
import manage
manage.run()
"""


@pytest.mark.slow
def test_ctrl_c_is_not_lost_in_a_callback_during_imports(tmp_path: Path) -> None:
    """Python ignores an exception there: `up` printed a traceback and continued."""
    result = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED_IN_CALLBACK],
        cwd=settings.BASE_DIR,
        env=clean_environment(TOOLTRAIL_VAR=str(tmp_path / "var")),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (result.returncode, result.stdout) == (130, "")
    assert result.stderr == "\ntooltrail: interrupted\n"
    assert not (tmp_path / "var" / "postgres").exists()


_INTERRUPTED_AT_FIRST = """
import os, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            sys.meta_path.remove(finder)
            os.kill(os.getpid(), 2)
finder = Finder()
sys.meta_path.insert(0, finder)
sys.path.insert(0, os.getcwd())
import manage
manage.run()
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["signal", "pathlib", "config.process", "config.instance"])
def test_ctrl_c_during_the_first_imports_prints_one_line(name: str, tmp_path: Path) -> None:
    # -S: the modules that an environment's own hooks import would be loaded already.
    paths = os.pathsep.join(path for path in sys.path if path)
    result = subprocess.run(
        [sys.executable, "-S", "-c", _INTERRUPTED_AT_FIRST, name],
        cwd=settings.BASE_DIR,
        env=clean_environment(TOOLTRAIL_VAR=str(tmp_path / "var"), PYTHONPATH=paths),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (result.returncode, result.stdout) == (130, "")
    assert result.stderr == "\ntooltrail: interrupted\n"


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.02, 0.1, 0.2])
def test_ctrl_c_during_imports_prints_one_line(seconds: float, tmp_path: Path) -> None:
    """Started with `-X importtime`, so that we know when the imports have begun."""
    process = subprocess.Popen(
        [sys.executable, "-X", "importtime", "manage.py", "up", "--port", "0"],
        cwd=settings.BASE_DIR,
        env=clean_environment(TOOLTRAIL_VAR=str(tmp_path / "var")),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if line.rstrip().endswith("config.instance"):
            break
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    stdout, rest = process.communicate(timeout=60)
    words = [line for line in rest.splitlines() if line and not line.startswith("import time:")]
    assert process.returncode == 130
    assert stdout == ""
    assert [line for line in words if not line.startswith("tooltrail: ")] == [], rest
    assert words.index("tooltrail: interrupted") == len(words) - 1, rest


@pytest.mark.slow
def test_start_of_up_imports_neither_pages_nor_jobs() -> None:
    program = "import django, sys; django.setup(); import config.process.up; print(*sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        check=True,
    )
    imported = set(ran.stdout.split())
    assert "audit.models" in imported
    unneeded = {"audit.tasks", "config.urls", "google", "jwt", "ninja", "pydantic", "requests"}
    assert not imported & unneeded


@pytest.mark.slow
def test_supervisor_imports_neither_django_nor_psycopg() -> None:
    """It runs as long as the server: 14 MB instead of 24, or of 70 with Django."""
    ran = subprocess.run(
        [sys.executable, "-c", "import config.process.supervise, sys; print(*sys.modules)"],
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        check=True,
    )
    assert not {"asyncio", "django", "psycopg"} & set(ran.stdout.split())
