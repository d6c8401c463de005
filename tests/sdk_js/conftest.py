"""Executors in JavaScript, run by Node with the package as it is built."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def js_sdk() -> Path:
    """The folder of the JavaScript SDK, built."""
    built = subprocess.run([ROOT / ".ci" / "sdk-js", "build"], capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    return ROOT / "sdk-js"
