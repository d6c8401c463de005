"""The last version with the migrations which the first ones replace, from the clone's history."""

import subprocess
import sys
from pathlib import Path

import pytest

from config.instance import BASE_DIR
from config.postgresql.schema import LAST_WITH_REPLACED
from tests.support.installation import clean_environment


def check_out_earlier_version(folder: Path) -> Path:
    """Its files. Skips the test where there is no history: a copy, or a shallow clone."""
    git = ["git", "-C", str(BASE_DIR)]
    known = subprocess.run(
        [*git, "cat-file", "-e", f"{LAST_WITH_REPLACED}^{{commit}}"],
        capture_output=True,
        check=False,
    )
    if known.returncode:
        pytest.skip("no history here")
    archive = folder / "earlier.tar"
    subprocess.run([*git, "archive", "-o", str(archive), LAST_WITH_REPLACED], check=True)
    files = folder / "earlier"
    files.mkdir()
    subprocess.run(["tar", "-xf", str(archive), "-C", str(files)], check=True)
    return files


def manage_earlier(files: Path, *arguments: str, **environment: str) -> None:
    """Run a management command of that version."""
    completed = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=files,
        env=clean_environment(**environment),
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
