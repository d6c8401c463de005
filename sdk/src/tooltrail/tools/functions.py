"""Reads a plain function as a tool: parameters from type hints, descriptions from docstrings."""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, partialmethod
from types import MethodType
from typing import Any, get_type_hints

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass as pydantic_dataclass
from pydantic.fields import FieldInfo

_SECTION = re.compile(
    r"(args|arguments|parameters|params|returns?|yields?|raises|examples?|notes?|attributes|"
    r"see also|warnings?|references)\s*:?",
    re.IGNORECASE,
)
_PARAMETER_SECTIONS = {"args", "arguments", "parameters", "params"}
_GOOGLE_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)")
_NUMPY_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?::.*)?")
_SPHINX_PARAMETERS = {"param", "parameter", "arg", "argument"}
_SPHINX_FIELD = re.compile(r":(\w+)([^:]*):\s*(.*)")


@dataclass(frozen=True, slots=True)
class FunctionTool:
    """A function read as a tool: its description, the type of its arguments, how to call it."""

    description: str
    model: Any
    call: Callable[[Any], Any]


def read_function(fn: Callable[..., Any]) -> FunctionTool:
    """Read a function's type hints and docstring.

    A parameter without a hint accepts anything. Not parameters of the tool: `self` of a bound
    method, and what a `functools.partial` binds by position. What it binds by name is a default.
    Raises TypeError for `*args` and `**kwargs`, whose names no schema can list, and NameError
    for hints that cannot be resolved.
    """
    target = _behind(fn)
    hints = get_type_hints(target, include_extras=True)
    description, texts = read_docstring(inspect.getdoc(target) or inspect.getdoc(_inner(fn)) or "")
    annotations: dict[str, Any] = {}
    defaults: dict[str, FieldInfo] = {}
    positional: list[str] = []
    for name, parameter in inspect.signature(fn).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(f"cannot describe the parameter *{name}: use named parameters")
        if parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append(name)
        annotations[name] = hints.get(name, Any)
        default = ... if parameter.default is parameter.empty else parameter.default
        defaults[name] = (
            Field(default, description=texts[name]) if name in texts else Field(default)
        )
    # A dataclass, because a model does not allow parameters named `json` or `_private`.
    model = pydantic_dataclass(
        type(name_of(fn), (), {"__annotations__": annotations, **defaults}),
        config=ConfigDict(extra="forbid", arbitrary_types_allowed=False),
        kw_only=True,
    )

    def call(args: Any) -> Any:
        values = {name: getattr(args, name) for name in annotations}
        leading = [values.pop(name) for name in positional]
        return fn(*leading, **values)

    return FunctionTool(description, model, call)


def is_partial(fn: Any) -> bool:
    """Whether it is a `functools.partial` or `partialmethod`."""
    return isinstance(fn, partial | partialmethod)


def name_of(fn: Any) -> str:
    """The name of a callable: its own, the one inside a `partial`, or that of its class."""
    name = getattr(fn, "__name__", None)
    if not isinstance(name, str) or isinstance(fn, MethodType):
        inner = _inner(fn)
        name = getattr(inner, "__name__", None) or type(inner).__name__
    return str(name)


def _inner(fn: Any) -> Any:
    """The callable inside any number of `partial`s, and inside a bound `partialmethod`."""
    while True:
        bound = getattr(fn, "__partialmethod__", None) or getattr(fn, "_partialmethod", None)
        if is_partial(bound):
            fn = bound
        if not is_partial(fn):
            return fn
        fn = fn.func


def _behind(fn: Any) -> Any:
    """The function with the hints: inside `partial`s, or the method of a callable object."""
    inner = _inner(fn)
    return inner if inspect.isroutine(inner) or inspect.isclass(inner) else type(inner).__call__


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Split a docstring into the function's description and a line for each parameter.

    Supports Google, NumPy and Sphinx style. Sections about anything else are ignored.
    """
    lines = inspect.cleandoc(text).splitlines()
    heads = (_SECTION.fullmatch(line) or _SPHINX_FIELD.fullmatch(line) for line in lines)
    start = next((index for index, head in enumerate(heads) if head), len(lines))
    parameters: dict[str, list[str]] = {}
    entry: list[str] | None = None  # where a continuation line is added
    pattern: re.Pattern[str] | None = None  # starts an entry; None outside parameter sections
    margin = 0  # indentation of the section's entries; -1 until the first entry is read
    for line in lines[start:]:
        stripped, depth = line.strip(), len(line) - len(line.lstrip())
        if not stripped:
            continue
        if heading := _SECTION.fullmatch(line):
            entry, margin = None, -1
            pattern = _GOOGLE_ENTRY if heading[1].lower() in _PARAMETER_SECTIONS else None
        elif not stripped.strip("-"):
            pattern = pattern and _NUMPY_ENTRY
        elif field := _SPHINX_FIELD.fullmatch(line):
            kind, names, body = field.groups()
            entry, pattern, margin = None, None, 1
            if kind in _SPHINX_PARAMETERS and names.split():
                entry = parameters[names.split()[-1].lstrip("*")] = [body]
        else:
            margin = depth if margin < 0 else margin
            if depth < margin:
                entry = pattern = None
            elif pattern and depth == margin and (match := pattern.fullmatch(stripped)):
                entry = parameters[match[1]] = list(match.groups()[1:])
            elif entry is not None:
                entry.append(stripped)
    texts = {name: " ".join(filter(None, parts)) for name, parts in parameters.items()}
    return "\n".join(lines[:start]).strip(), {name: text for name, text in texts.items() if text}
