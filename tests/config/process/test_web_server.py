"""The parent of the web processes imports their modules before it forks."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

_FORK = """
import sys
from config.process import web_server
web_server.load()
loaded = set(sys.modules)
from config import readiness
readiness.why_unfit = lambda: None  # it needs a database, so it runs in each web process
import config.wsgi
print(*sorted(sys.modules.keys() - loaded))
"""


def test_web_process_imports_only_its_entry_point() -> None:
    """Each import after the fork delays the first request: 0.6 s with migrations and files."""
    completed = subprocess.run(
        [sys.executable, "-c", _FORK], capture_output=True, text=True, check=True, timeout=60
    )
    assert completed.stdout.split() == ["config.wsgi"]


def test_web_process_imports_no_extra_before_its_use() -> None:
    """Where it is installed, pyarrow takes 38 MB in a process, Typst 5."""
    load = "import sys; from config.process import web_server; web_server.load()"
    completed = subprocess.run(
        [sys.executable, "-c", f"{load}; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    imported = set(completed.stdout.split())
    assert "audit.reports.pdf" in imported
    assert not imported & {"grpc", "lxml", "pyarrow", "typst", "xmlsec"}
