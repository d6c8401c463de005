"""The trails and servers of tests; and counts recorded rows that are exempt, by decision."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from tooltrail import Trail
from tooltrail.testing import MemoryTrail, tooltrail_trail

from sdk.tests.support.ingest_key import KEY
from sdk.tests.support.ingest_server import Server, serving
from sdk.tests.support.vectors import EXEMPT

__all__ = ["tooltrail_trail"]

# Whether examples are made quickly says how busy the machine is.
settings.register_profile(
    "any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any-machine")


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
    trails: list[Trail] = []

    def make(**options: Any) -> Trail:
        trail = Trail(server.url, KEY, spool_dir=tmp_path, **options)
        trails.append(trail)
        return trail

    yield make
    for trail in trails:
        trail.close(0.1)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many recorded rows are exempt, and why."""
    reasons: Counter[str] = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        if isinstance(report.longrepr, tuple) and EXEMPT in report.longrepr[2]:
            reasons[report.longrepr[2].partition(EXEMPT)[2]] += 1
    if not reasons:
        return
    terminalreporter.section(f"{reasons.total()} recorded rows are exempt")
    for reason, count in sorted(reasons.items(), key=lambda item: _by_number(item[0])):
        terminalreporter.line(f"{count:5} {reason}")


def _by_number(reason: str) -> tuple[int, str]:
    number = re.search(r"\d+", reason)
    return (int(number[0]) if number else 0, reason)
