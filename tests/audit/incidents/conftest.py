"""A worker with a key of its own for each test of incidents."""

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker for this test, with a key of its own."""
    from django.conf import settings  # not set up when this file is read

    from tests.support.ledger_log import write_key

    monkeypatch.setattr(settings, "LEDGER_DIR", tmp_path / "ledger")
    write_key(tmp_path / "ledger", os.urandom(32))
