"""The pages of the reference that are made from code. Import it after `django.setup()`."""

import argparse
import os
from collections.abc import Iterator, Sequence
from typing import Any

from django.core.management import get_commands, load_command_class
from tooltrail.cli.main import command_parser

from audit.intake.metrics import FAMILIES
from config.http.problems import KINDS
from config.openapi import description

_OWN = ("audit", "config", "tenants", "tools_registry")
_WIDTH = "88"
"""Characters of a line of a command's help."""


def pages() -> dict[str, str]:
    """The Markdown of each generated page, by its name on the site."""
    return {
        "reference/api": "\n".join(_api()),
        "reference/commands": "\n".join(_commands()),
        "reference/metrics": "\n".join(_metrics()),
    }


def _api() -> Iterator[str]:
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
            yield f"## {tag['name'].capitalize()}\n\n{_prose(tag['description'])}\n"
        for method, path, operation in operations:
            yield from _operation(method, path, operation)
    yield "## Problems\n"
    yield "An error has one of these codes as its `code`.\n"
    rows = [(f"`{code}`", str(kind.status), kind.title) for code, kind in KINDS.items()]
    yield from _table(("Code", "Status", "Meaning"), rows)


def _operation(method: str, path: str, operation: dict[str, Any]) -> Iterator[str]:
    yield f"### {operation['summary']}\n"
    yield f"```text\n{method} {path}\n```\n"
    if text := operation.get("description"):
        yield f"{_prose(text)}\n"
    rows = [
        (
            f"`{each['name']}`",
            f"{each['in']}{', required' if each.get('required') else ''}",
            _schema_type(each["schema"]),
            each.get("description") or each["schema"].get("description", ""),
        )
        for each in operation.get("parameters", ())
    ]
    if rows:
        yield from _table(("Parameter", "Where", "Type", "Meaning"), rows)
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


def _schema_type(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_schema_type(each) for each in schema["anyOf"])
    if "$ref" in schema:
        return f"`{schema['$ref'].rpartition('/')[2]}`"
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_schema_type(schema.get('items', {}))}"
    return str(schema.get("format") or schema.get("type", "any"))


def _commands() -> Iterator[str]:
    yield "# Command lines\n"
    yield (
        "The help of every command of this version. In a checkout, commands of the server begin"
        " with `uv run manage.py`; the wheel has the same as `tooltrail-server`.\n"
    )
    yield "## The server: manage.py\n"
    for name, application in sorted(get_commands().items()):
        if str(application) in _OWN:
            parser = load_command_class(application, name).create_parser("manage.py", name)
            yield from _help(parser)
    yield "## The SDK: tooltrail\n"
    for verb in _verbs(command_parser()):
        yield from _help(verb)


def _verbs(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.values()


def _help(parser: argparse.ArgumentParser) -> Iterator[str]:
    """A command and its verbs, wrapped the same way wherever the site is built."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = _WIDTH  # what argparse wraps at
    try:
        yield f"### `{parser.prog}`\n\n```text\n{parser.format_help().rstrip()}\n```\n"
        for verb in _verbs(parser):
            yield f"#### `{verb.prog}`\n\n```text\n{verb.format_help().rstrip()}\n```\n"
    finally:
        os.environ.pop("COLUMNS")
        if before is not None:
            os.environ["COLUMNS"] = before


def _metrics() -> Iterator[str]:
    yield "# Metrics\n"
    yield (
        "What each web server counts and `/metrics` exposes. How to scrape it, the gauges of"
        " database and jobs, and the alerts to set:"
        " [Monitoring](/operations.md#monitoring).\n"
    )
    rows = [
        (f"`{name}`", kind, text, ", ".join(f"`{each}`" for each in _labels(suffixes)))
        for name, (kind, text, suffixes) in FAMILIES.items()
    ]
    yield from _table(("Name", "Type", "Meaning", "Labels"), rows)


def _labels(suffixes: tuple[str, ...]) -> list[str]:
    names = (each.partition("{")[2].partition("=")[0] for each in suffixes)
    return sorted({name for name in names if name})


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{' --- |' * len(heads)}"
    for row in rows:
        yield f"| {' | '.join(_cell(each) for each in row)} |"
    yield ""


def _cell(text: str) -> str:
    return _prose(text).replace("\n", " ").replace("|", "\\|")


def _prose(text: str) -> str:
    """Text of a docstring: Markdown, in which only the code between backticks is markup."""
    parts = text.split("`")
    parts[::2] = [
        part.replace("<", "&lt;").replace("*", "\\*").replace("[", "\\[") for part in parts[::2]
    ]
    return "`".join(parts)
