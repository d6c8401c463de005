"""The first start compiles the web server's modules while it prepares the database."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from config.instance import BASE_DIR

pytestmark = pytest.mark.slow

_PROGRAM = """
import importlib.util, sys, time
from pathlib import Path
import psutil
from config.instance import BASE_DIR
from config.process.byte_code import compiled_meanwhile

compiled = Path(importlib.util.cache_from_source(str(BASE_DIR / "config" / "urls.py")))
deadline = time.monotonic() + 240
with compiled_meanwhile():
    beside = len(psutil.Process().children())
    while beside and not compiled.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
print(beside, compiled.exists(), len(psutil.Process().children()))
"""


def run(folder: Path, **more: str) -> str:
    """What the program says with a folder of byte code of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHONDONT")}
    completed = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        cwd=BASE_DIR,
        env=kept | {"PYTHONPYCACHEPREFIX": str(folder), "TOOLTRAIL_SECRET_KEY": "k" * 50} | more,
        capture_output=True,
        text=True,
        check=True,
    )
    return completed.stdout.strip()


def test_modules_without_byte_code_are_compiled_once_in_another_process(tmp_path: Path) -> None:
    assert run(tmp_path) == "1 True 0"
    assert run(tmp_path) == "0 True 0"  # later starts do not import everything again


def test_nothing_is_compiled_where_byte_code_is_not_wanted(tmp_path: Path) -> None:
    assert run(tmp_path, PYTHONDONTWRITEBYTECODE="1") == "0 False 0"
