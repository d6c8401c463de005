"""A file that is to be imported: which form it has, and the tools in it. Pure."""

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

from tools_registry.contract_check import refuse_constant, refuse_twice
from tools_registry.exchange.definitions import definitions_in, read_definition
from tools_registry.exchange.document import FORMAT, FORMAT_VERSION, ReadTool, read_tool

DOCUMENT_MAX_BYTES: Final = 10 * 1024 * 1024
TOOLS_MAX: Final = 5_000


class UnreadableError(ValueError):
    """A file nothing can be imported from, with the reason in one line."""


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """What is in a file."""

    forms: tuple[str, ...]
    """What its tools are written as, in words."""
    tools: list[ReadTool]
    is_own: bool
    """Whether it is the registry's own document: with versions and states."""
    note: str = ""
    """What of it is missing as a whole."""


def read_document(data: bytes | str, *, limit: int | None = DOCUMENT_MAX_BYTES) -> ReadDocument:
    """Read a file of tools. Raises UnreadableError for what is not one as a whole.

    What is wrong with single tools is among their problems.
    """
    document = _read_json(data, limit)
    is_own = isinstance(document, dict) and document.get("format") == FORMAT
    if is_own:
        forms: Counter[str] = Counter({"Tooltrail's registry": 1})
        tools = _own_tools(document)
    else:
        forms, tools = Counter(), []
        for path, entry in definitions_in(document):
            tool, form = read_definition(path, entry)
            tools.append(tool)
            if form is not None:
                forms[form.label] += 1
        if not forms:
            raise UnreadableError(
                tools[0].problems[0]
                if len(tools) == 1
                else "No tools are in it: neither an export of a registry, nor definitions of"
                " OpenAI, Anthropic or MCP."
            )
    if len(tools) > TOOLS_MAX:
        raise UnreadableError(f"It holds {len(tools):,} tools, more than {TOOLS_MAX:,}.")
    _refuse_twins(tools)
    return ReadDocument(tuple(forms), tools, is_own, _more(document))


def _read_json(data: bytes | str, limit: int | None) -> Any:
    if limit is not None and len(data) > limit:
        raise UnreadableError(f"It has {len(data):,} bytes, more than {limit:,}.")
    try:
        text = data.decode("utf-8-sig") if isinstance(data, bytes) else data
        return json.loads(text, parse_constant=refuse_constant, object_pairs_hook=refuse_twice)
    except UnicodeDecodeError:
        raise UnreadableError("It is no JSON: its bytes are not UTF-8.") from None
    except json.JSONDecodeError as error:
        said = f"{error.msg} in line {error.lineno}, column {error.colno}"
        raise UnreadableError(f"It is no JSON: {said}.") from None
    except ValueError as error:
        raise UnreadableError(f"It is no JSON that can be taken: {error}.") from None
    except RecursionError:
        raise UnreadableError("It is nested too deep.") from None


def _own_tools(document: dict[str, Any]) -> list[ReadTool]:
    if document.get("version") != FORMAT_VERSION:
        said = f"version {FORMAT_VERSION} of {FORMAT} is read here"
        raise UnreadableError(f"version: only {said}.")
    entries = document.get("tools")
    if not isinstance(entries, list):
        raise UnreadableError("tools: is no list.")
    count = document.get("count", len(entries))
    if count != len(entries):
        raise UnreadableError(f"It was cut off: {len(entries):,} tools of {count}.")
    return [read_tool(f"tools[{index}]", entry) for index, entry in enumerate(entries)]


def _refuse_twins(tools: list[ReadTool]) -> None:
    first: dict[str, ReadTool] = {}
    for tool in tools:
        if tool.name and (other := first.setdefault(tool.name, tool)) is not tool:
            tool.refuse(f"{tool.path}.name: {other.path} has that name already")


def _more(document: Any) -> str:
    result = document.get("result", document) if isinstance(document, dict) else None
    if isinstance(result, dict) and result.get("nextCursor"):
        return "The server has more tools (nextCursor): they are not in this file."
    return ""
