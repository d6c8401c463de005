"""A day in the past with partitions of its own."""

from collections.abc import Iterator
from datetime import date

import pytest


@pytest.fixture
def long_ago() -> Iterator[date]:
    """A past day that has partitions for this test only."""
    from tests.support.retention import partitions_long_ago  # needs Django, which is not set up yet

    with partitions_long_ago() as day:
        yield day
