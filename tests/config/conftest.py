"""Fixtures of tests that need servers of their own."""

from collections.abc import Iterator

import pytest

from tests.support.citus import CITUS, citus_nodes


@pytest.fixture
def nodes() -> Iterator[list[str]]:
    """URLs of superusers of a coordinator and two workers."""
    if not (CITUS / "cluster.py").exists():
        pytest.skip(f"NOTHING IS TRIED ON A CLUSTER: {CITUS}/cluster.py is missing")
    with citus_nodes() as urls:
        yield urls
