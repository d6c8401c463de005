"""`tooltrail verify` as it was at commit 8c0d557, which knows bundles of format 1 only.

Its code comes from the history of the repository, and needs Python 3.13.
"""

import io
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from config.instance import BASE_DIR

OLD_BUNDLES = BASE_DIR / "sdk" / "tests" / "evidence" / "made_by_8c0d557"
_SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
from tooltrail import commands
assert commands.__file__.startswith(sys.argv[1]), commands.__file__
sys.exit(commands.main(sys.argv[2:]))
"""


def old_code(folder: Path) -> Path:
    """Unpack the SDK's package of that commit. Skips the test in a checkout without history."""
    git = ["git", "-C", str(BASE_DIR), "archive", "8c0d557", "sdk/src"]
    archive = subprocess.run(git, capture_output=True, check=False)
    if archive.returncode:
        pytest.skip(f"a checkout without its history: {archive.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder / "sdk" / "src"


def old_verify(code: Path, bundle: Path, key: str) -> "subprocess.CompletedProcess[str]":
    """Run the old command, in a process that finds the old package first."""
    return subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(code), "verify", str(bundle), "--key", key],
        capture_output=True,
        text=True,
        check=False,
    )
