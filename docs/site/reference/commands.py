"""The command lines of the server and of the SDK, from their parsers."""

import argparse
import os
from collections.abc import Iterator

from django.core.management import get_commands, load_command_class
from tooltrail.cli.main import command_parser

_OWN = ("audit", "config", "tenants", "tools_registry")
_WIDTH = "88"
"""Characters of a line of a command's help."""


def commands() -> Iterator[str]:
    """The page."""
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
