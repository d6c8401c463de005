"""The writer of CSV files: which cells it escapes, and that there is no second writer."""

import csv
import io
import re
from pathlib import Path

import pytest

from audit.exports.csv_file import csv_rows

_ROOT = Path(__file__).parents[3]
_OWN_CODE = ("audit", "config", "sdk/src", "tenants", "tools_registry")
_WRITES_CSV = re.compile(r"^\s*(import csv|from csv import)\b", re.MULTILINE)


@pytest.mark.parametrize(
    "text",
    [
        "=1",
        "\n=1",
        "\t1",
        "\r1",
        "\n1",
        "＝1",
        "\u3000＝1",
        " \xa0@a",
        "\u200b+1",
        "\ufeff-1",
        "﹦1",
    ],
)
def test_formula_cell_is_prefixed_with_a_quote(text: str) -> None:
    written = b"".join(csv_rows(iter([[{"text": text}]]), ["text"])).decode()
    header, row, last = csv.reader(io.StringIO(written, newline=""))
    assert (header, row, last) == (["text"], [f"'{text}"], ["# count", "1"])


@pytest.mark.parametrize("text", ["", "a=1", "London", "1 - 2", " a", "'=1"])
def test_other_cells_stay_unchanged(text: str) -> None:
    written = b"".join(csv_rows(iter([[{"text": text, "n": 1}]]), ["text", "n"])).decode()
    _, row, _ = csv.reader(io.StringIO(written, newline=""))
    assert row == [text, "1"]


def test_object_is_written_as_json_in_one_cell() -> None:
    written = b"".join(csv_rows(iter([[{"details": {"a": ["=1"]}}]]), ["details"])).decode()
    _, row, _ = csv.reader(io.StringIO(written, newline=""))
    assert row == ['{"a": ["=1"]}']


def test_no_other_module_writes_csv() -> None:
    """A second writer once had an older copy of the guard."""
    writers = [
        str(path.relative_to(_ROOT))
        for folder in _OWN_CODE
        for path in (_ROOT / folder).rglob("*.py")
        if _WRITES_CSV.search(path.read_text())
    ]
    assert writers == ["audit/exports/csv_file.py"]
