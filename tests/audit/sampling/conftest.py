"""A worker with a key of its own for each test of samples."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker for this test, with a key of its own."""

    from tests.support.ledger_log import give_key

    give_key(monkeypatch, tmp_path)
