"""Reads the recorded behaviour of the seed systems (`conformance/*.jsonl`) as test cases."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[1] / "conformance"
EXEMPT = "exempt, "  # begins the reason a row's test is skipped for

tested: set[str] = set()
"""The ids of the rows that some test has taken."""


def rows(file: str, *apis: str) -> list[dict[str, Any]]:
    """The rows of a file, those of the given apis only where any is given."""
    lines = (FOLDER / file).read_text().splitlines()
    return [row for row in map(json.loads, lines) if not apis or row["api"] in apis]


def cases(
    file: str, *apis: str, exempt: Callable[[dict[str, Any]], str | None] = lambda row: None
) -> pytest.MarkDecorator:
    """Parametrise a test with `row`; an exempt one names the numbered decision it falls under.

    Exempt rows are skipped, and conftest.py counts them by decision at the end.
    """
    parameters = []
    for row in rows(file, *apis):
        tested.add(row["id"])
        reason = exempt(row)
        marks = [pytest.mark.skip(reason=f"{EXEMPT}{reason}")] if reason else []
        parameters.append(pytest.param(row, id=row["id"], marks=marks))
    return pytest.mark.parametrize("row", parameters)
