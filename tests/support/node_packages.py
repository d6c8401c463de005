"""Packages of npm that tests run, installed once beside the running environment."""

import fcntl
import os
import shutil
import subprocess
import sys
from functools import cache
from hashlib import sha256
from pathlib import Path

import pytest


@cache
def installed(source: Path) -> Path:
    """The folder with the scripts of `source` and what its package.json names in exact versions.

    Skips without Node.js.
    """
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip(f"the scripts in {source.name} need Node.js")
    package = (source / "package.json").read_bytes()
    folder = Path(sys.prefix) / f"{source.name}-{sha256(package).hexdigest()[:12]}"
    folder.mkdir(exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several processes of pytest share it
        for file in (source / "package.json", *source.glob("*.mjs")):
            shutil.copyfile(file, folder / file.name)
        if not (folder / "complete").exists():
            command = [npm, "install", "--no-package-lock", "--ignore-scripts"]
            subprocess.run(
                [*command, "--no-audit", "--no-fund"],
                cwd=folder,
                env=dict(os.environ),
                check=True,
                capture_output=True,
                timeout=600,
            )
            (folder / "complete").touch()
    return folder
