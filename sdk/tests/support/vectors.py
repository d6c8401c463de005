"""Reads the recorded behaviour of the seed systems (`conformance/*.jsonl`) as test cases."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[1] / "conformance"
EXEMPT = "exempt, "  # the start of the reason for which a row's test is skipped

tested: set[str] = set()
"""The ids of the rows that some test has taken."""


def rows(file: str, *apis: str) -> list[dict[str, Any]]:
    """The rows of a file, or only those of the given apis."""
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
