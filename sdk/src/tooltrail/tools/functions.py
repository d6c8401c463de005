"""Reads a plain function as a tool: parameters from type hints, descriptions from docstrings."""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
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
    """A function as a tool: what it is for, the type of its arguments, and how to call it."""

    description: str
    model: Any
    call: Callable[[Any], Any]


def read_function(fn: Callable[..., Any]) -> FunctionTool:
    """Read a function's hints and docstring.

    A parameter without hint takes anything; `self` of a bound method is none of them.
    Raises TypeError for `*args` and `**kwargs`, which no schema can name, NameError for hints
    that cannot be resolved.
    """
    hints = get_type_hints(fn, include_extras=True)
    description, texts = read_docstring(inspect.getdoc(fn) or "")
    annotations: dict[str, Any] = {}
    defaults: dict[str, FieldInfo] = {}
    positional: list[str] = []
    for name, parameter in inspect.signature(fn).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(f"cannot describe the parameter *{name}: give each a name")
        if parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append(name)
        annotations[name] = hints.get(name, Any)
        default = ... if parameter.default is parameter.empty else parameter.default
        defaults[name] = (
            Field(default, description=texts[name]) if name in texts else Field(default)
        )
    # A dataclass, because a model would not take parameters called `json` or `_private`.
    model = pydantic_dataclass(
        type(fn.__name__, (), {"__annotations__": annotations, **defaults}),
        config=ConfigDict(extra="forbid", arbitrary_types_allowed=False),
        kw_only=True,
    )

    def call(args: Any) -> Any:
        values = {name: getattr(args, name) for name in annotations}
        leading = [values.pop(name) for name in positional]
        return fn(*leading, **values)

    return FunctionTool(description, model, call)


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """What a docstring says of the function, and of each parameter in one line.

    Knows Google, NumPy and Sphinx style; sections on other things are left out.
    """
    lines = inspect.cleandoc(text).splitlines()
    heads = (_SECTION.fullmatch(line) or _SPHINX_FIELD.fullmatch(line) for line in lines)
    start = next((index for index, head in enumerate(heads) if head), len(lines))
    parameters: dict[str, list[str]] = {}
    entry: list[str] | None = None  # where a continuation line belongs
    pattern: re.Pattern[str] | None = None  # what begins an entry; None outside of parameters
    margin = 0  # of the section's entries, -1 until the first one shows it
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
    said = {name: " ".join(filter(None, parts)) for name, parts in parameters.items()}
    return "\n".join(lines[:start]).strip(), {name: text for name, text in said.items() if text}
