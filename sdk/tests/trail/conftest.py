from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tooltrail import Trail
from tooltrail.testing import MemoryTrail, tooltrail_trail

from sdk.tests.support.ingest_server import Server, serving

__all__ = ["tooltrail_trail"]

KEY = "tt_0198c0de000070008000000000000001_key1_secret_crc"


@pytest.fixture
def trail(tooltrail_trail: MemoryTrail) -> MemoryTrail:
    return tooltrail_trail


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


@pytest.fixture
def make_trail(server: Server, tmp_path: Path) -> Iterator[Callable[..., Trail]]:
    """Trails to the server of this test, with their spool in its folder."""
    made: list[Trail] = []

    def make(**options: Any) -> Trail:
        trail = Trail(server.url, KEY, spool_dir=tmp_path, **options)
        made.append(trail)
        return trail

    yield make
    for trail in made:
        trail.close(0.1)
