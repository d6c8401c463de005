"""The operations of the API, from its OpenAPI document."""

from collections.abc import Iterator
from typing import Any

from config.http.problems import KINDS
from config.openapi import description
from docs.site.reference.markdown import prose, schema_type, table


def api() -> Iterator[str]:
    """The page."""
    document = description()
    yield "# API operations\n"
    yield (
        "Every operation of [the API](/api.md), from the OpenAPI document of this version. The"
        " running server has the same at `/api/v1/openapi.json`, and with all schemas at"
        " `/api/v1/docs`.\n"
    )
    for tag in document["tags"]:
        operations = [
            (method.upper(), path, operation)
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
            if tag["name"] in operation.get("tags", ())
        ]
        if operations:
            yield f"## {tag['name'].capitalize()}\n\n{prose(tag['description'])}\n"
        for method, path, operation in operations:
            yield from _operation(method, path, operation)
    yield "## Problems\n"
    yield "An error has one of these codes as its `code`.\n"
    rows = [(f"`{code}`", str(kind.status), kind.title) for code, kind in KINDS.items()]
    yield from table(("Code", "Status", "Meaning"), rows)


def _operation(method: str, path: str, operation: dict[str, Any]) -> Iterator[str]:
    yield f"### {operation['summary']}\n"
    yield f"```text\n{method} {path}\n```\n"
    if text := operation.get("description"):
        yield f"{prose(text)}\n"
    rows = [
        (
            f"`{each['name']}`",
            f"{each['in']}{', required' if each.get('required') else ''}",
            schema_type(each["schema"]),
            each.get("description") or each["schema"].get("description", ""),
        )
        for each in operation.get("parameters", ())
    ]
    if rows:
        yield from table(("Parameter", "Where", "Type", "Meaning"), rows)
    problems = sorted(
        {
            code
            for response in operation["responses"].values()
            for content in response.get("content", {}).values()
            for code in content.get("examples", {})
        }
    )
    if problems:
        codes = ", ".join(f"[`{code}`](#problems)" for code in problems)
        yield f"Errors: {codes}.\n"
