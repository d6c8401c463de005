"""Counts the recorded rows that do not bind, by the decision they fall under."""

import re
from collections import Counter

import pytest

from sdk.tests.support.vectors import EXEMPT


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
