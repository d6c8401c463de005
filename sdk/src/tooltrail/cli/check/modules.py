"""Definitions of the tools that a Python module has: decorated functions and `Tool` objects.

The module is imported, so its code runs, in the current folder and with no server: whatever it
announces at import must not be published by a check.
"""

import importlib
import inspect
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from tooltrail.announcement import Announcement, announcement_of
from tooltrail.cli.check.definitions import CheckError, Definition, own_form, relative
from tooltrail.guard import unwrap
from tooltrail.tools.functions import is_partial
from tooltrail.tools.registry import ToolRegistry

_SERVER: Final = ("TOOLTRAIL_URL", "TOOLTRAIL_API_KEY")


def read_module(name: str) -> list[Definition]:
    """The definitions of a module's tools, in its order.

    Its tools are what its names, the attributes of its classes, and its registries hold. Raises
    CheckError, also for whatever the module raises.
    """
    with _no_server():
        module = _imported(name)
        # A tool that several names hold is one.
        tools = {id(value): (place, value) for place, value in _tools(module)}
        definitions = [
            _definition(f"{name}: {place}", announcement)
            for place, value in tools.values()
            if (announcement := announcement_of(value)) is not None
        ]
    if not definitions:
        raise CheckError(f"{name}: has no tools: nothing that trail.tool decorates, and no Tool")
    return definitions


def _imported(name: str) -> ModuleType:
    if (folder := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, folder)
    try:
        with redirect_stdout(sys.stderr):  # standard output is the report's
            return importlib.import_module(name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever code at import raises, SystemExit included
        reason = " ".join(str(error).split())
        raise CheckError(f"{name}: the import fails: {type(error).__name__}: {reason}") from error


@contextmanager
def _no_server() -> Iterator[None]:
    """Take server and key from the environment, so that a `Trail` of the module is off."""
    kept = {name: os.environ.pop(name) for name in _SERVER if name in os.environ}
    logger = logging.getLogger("tooltrail")
    level = logger.level
    logger.setLevel(logging.ERROR)  # it would warn that nothing is recorded
    try:
        yield
    finally:
        logger.setLevel(level)
        os.environ.update(kept)


def _tools(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Whatever may be a tool, with its place."""
    for place, value in _values(module):
        if isinstance(value, ToolRegistry):
            yield from ((f"{place}[{tool.name!r}]", tool) for tool in value.all())
        else:
            yield place, _inner(value)


def _values(module: ModuleType) -> Iterator[tuple[str, Any]]:
    for name, value in list(vars(module).items()):
        yield name, value
        if inspect.isclass(value) and value.__module__ == module.__name__:
            yield from ((f"{name}.{member}", each) for member, each in list(vars(value).items()))


def _inner(value: Any) -> Any:
    """The decorated function inside a guard, a `partial`, or a method of a class."""
    while True:
        if is_partial(value):
            value = value.func
        elif isinstance(value, staticmethod | classmethod):
            value = value.__func__
        else:
            inner, _ = unwrap(value)
            if inner is value:
                return value
            value = inner


def _definition(place: str, announcement: Announcement) -> Definition:
    file, line = _source(announcement.fn)
    content = own_form(announcement.body())
    return Definition(place, content, is_own=True, file=file, line=line)


def _source(fn: Any) -> tuple[Path | None, int]:
    try:
        code = inspect.unwrap(fn).__code__
    except (AttributeError, TypeError, ValueError):
        return None, 1
    return relative(Path(code.co_filename)), code.co_firstlineno
