"""Markdown of generated pages: tables, texts of docstrings, types of JSON schemas."""

from collections.abc import Iterator, Sequence
from typing import Any


def table(
    heads: tuple[str, ...], rows: Sequence[tuple[str, ...]], *, is_markdown: bool = False
) -> Iterator[str]:
    """A table and an empty line after it. Cells are `prose`, unless they are Markdown already."""
    yield f"| {' | '.join(heads)} |"
    yield f"|{' --- |' * len(heads)}"
    for row in rows:
        yield f"| {' | '.join(_cell(each if is_markdown else prose(each)) for each in row)} |"
    yield ""


def _cell(text: str) -> str:
    return text.replace("\n", " ").replace("|", "\\|")


def prose(text: str) -> str:
    """Text of a docstring: Markdown, in which only the code between backticks is markup."""
    parts = text.split("`")
    parts[::2] = [
        part.replace("<", "&lt;").replace("*", "\\*").replace("[", "\\[") for part in parts[::2]
    ]
    return "`".join(parts)


def schema_type(schema: dict[str, Any]) -> str:
    """The type in a JSON schema, in a few words."""
    if "anyOf" in schema:
        return " or ".join(schema_type(each) for each in schema["anyOf"])
    if "$ref" in schema:
        return f"`{schema['$ref'].rpartition('/')[2]}`"
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {schema_type(schema.get('items', {}))}"
    return str(schema.get("format") or schema.get("type", "any"))
