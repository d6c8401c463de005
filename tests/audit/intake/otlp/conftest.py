"""Fixtures of tests with exporters of OpenTelemetry."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture
def no_exporter_is_left() -> Iterator[None]:
    """OpenTelemetry starts a thread in every forked child for each exporter that still exists.

    A child with threads cannot enter the namespace that PostgreSQL needs.
    """
    yield
    gc.collect()
