"""The columns of `tooltrail query` show members that the API's rows have."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import pytest
from tooltrail.cli.view import View
from tooltrail.cli.views import VIEWS, VIOLATION_ROWS

from config.openapi import description

TABLES = {name: view for name, view in VIEWS.items() if view.columns} | {"rows": VIOLATION_ROWS}
del TABLES["registry"]  # an export, whose rows are described by its format


class Asked(Mapping[str, Any]):
    """A row that notes which members it is asked for, and has none of them."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.names.add(name)
        return None

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 1


def members_of_rows(document: Mapping[str, Any], view: View) -> set[str]:
    """The members of a view's rows, by the description of the API."""

    def resolved(schema: dict[str, Any]) -> dict[str, Any]:
        while "$ref" in schema:
            schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        return schema

    def plain(path: str) -> str:
        return re.sub(r"\{\w+\}", "{}", path)

    wanted = plain(f"/api/v1/{view.path}")
    (operation,) = [one["get"] for path, one in document["paths"].items() if plain(path) == wanted]
    answer = resolved(operation["responses"]["200"]["content"]["application/json"]["schema"])
    members = answer["properties"]
    rows = members["items"] if "items" in members else members[view.rows]
    return set(resolved(rows["items"])["properties"])


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_columns_show_members_of_the_rows(name: str) -> None:
    view, row = TABLES[name], Asked()
    for column in view.columns:
        with suppress(TypeError):  # of a member that is not there
            column.of(row)
    assert row.names
    assert row.names <= members_of_rows(description(), view)
