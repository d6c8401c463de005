"""Opens a file to be imported: detects its form and lists its tools. Pure.

The file is parsed once. Each tool in it is an entry, which is read later, when it is processed.
"""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from tools_registry.contract_check import refuse_constant, refuse_twice
from tools_registry.exchange.definitions import (
    defined_name,
    definitions_in,
    form_of,
    read_definition,
)
from tools_registry.exchange.document import FORMAT, FORMAT_VERSION, ReadTool, read_tool
from tools_registry.schemas import name_in

DOCUMENT_MAX_BYTES: Final = 10 * 1024 * 1024
TOOLS_MAX: Final = 5_000
_TOO_MANY: Final = f"The file has more than {TOOLS_MAX:,} tools."


class UnreadableError(ValueError):
    """Nothing can be imported from the file; the message is the reason, on one line."""

    def __init__(self, reason: str) -> None:
        # The reason may quote the file, and a lone surrogate cannot be encoded.
        super().__init__(reason.encode(errors="backslashreplace").decode())


@dataclass(frozen=True, slots=True)
class Entry:
    """A tool in a file, not read yet."""

    path: str
    """Its place in the file."""
    name: str
    """'' if it is missing or invalid."""
    content: Any
    is_own: bool
    """Whether it has the registry's own format."""
    twin: str = ""
    """Path of an earlier tool with the same name, for which this one is refused."""

    def read(self) -> ReadTool:
        """Read the tool. Never raises: errors are in the tool's problems."""
        tool = (read_tool if self.is_own else read_definition)(self.path, self.content)
        if self.twin:
            tool.refuse(f"{tool.path}.name: is already the name of {self.twin}")
        return tool


@dataclass(frozen=True, slots=True)
class OpenDocument:
    """The content of a file."""

    forms: tuple[str, ...]
    """The labels of its tools' forms."""
    entries: list[Entry]
    is_own: bool
    """Whether it has the registry's own format, with versions and states."""
    note: str
    """What the whole file lacks, as text; '' if nothing."""
    size: int
    """Size of the file, in bytes or characters."""


def open_document(data: bytes | str, *, limit: int | None = DOCUMENT_MAX_BYTES) -> OpenDocument:
    """Parse a file of tools. Raises UnreadableError if the file as a whole is invalid.

    Problems of single tools are reported when they are read.
    """
    document = _read_json(data, limit)
    is_own = isinstance(document, dict) and document.get("format") == FORMAT
    if is_own:
        forms: Counter[str] = Counter({"Tooltrail's registry": 1})
        tools = [(path, name_in(entry), entry) for path, entry in _own_tools(document)]
    else:
        # One more than allowed, so that a list of millions is refused without reading all of it.
        definitions = islice(definitions_in(document), TOOLS_MAX + 1)
        tools = [(path, defined_name(entry), entry) for path, entry in definitions]
        if len(tools) > TOOLS_MAX:
            raise UnreadableError(_TOO_MANY)
        forms = Counter(form.label for *_, entry in tools if (form := form_of(entry)) is not None)
        if not forms:
            raise UnreadableError(
                read_definition(tools[0][0], tools[0][2]).problems[0]
                if len(tools) == 1
                else "The file has no tools. Supported are registry exports, and definitions of"
                " OpenAI, Anthropic and MCP."
            )
    entries = _entries(tools, is_own)
    return OpenDocument(tuple(forms), entries, is_own, _more(document), len(data))


def _read_json(data: bytes | str, limit: int | None) -> Any:
    if limit is not None and len(data) > limit:
        raise UnreadableError(f"The file has {len(data):,} bytes, more than {limit:,}.")
    try:
        text = data.decode("utf-8-sig") if isinstance(data, bytes) else data
        return json.loads(text, parse_constant=refuse_constant, object_pairs_hook=refuse_twice)
    except UnicodeDecodeError:
        raise UnreadableError("Invalid JSON: the bytes are not UTF-8.") from None
    except json.JSONDecodeError as error:
        detail = f"{error.msg} in line {error.lineno}, column {error.colno}"
        raise UnreadableError(f"Invalid JSON: {detail}.") from None
    except ValueError as error:
        raise UnreadableError(f"Unsupported JSON: {error}.") from None
    except RecursionError:
        raise UnreadableError("Invalid JSON: nested too deeply.") from None


def _own_tools(document: dict[str, Any]) -> list[tuple[str, Any]]:
    if document.get("version") != FORMAT_VERSION:
        detail = f"version {FORMAT_VERSION} of {FORMAT} is supported"
        raise UnreadableError(f"version: only {detail}.")
    entries = document.get("tools")
    if not isinstance(entries, list):
        raise UnreadableError("tools: is not a list.")
    count = document.get("count", len(entries))
    if count != len(entries):
        raise UnreadableError(f"The file is truncated: {len(entries):,} tools of {count}.")
    if len(entries) > TOOLS_MAX:
        raise UnreadableError(_TOO_MANY)
    return [(f"tools[{index}]", entry) for index, entry in enumerate(entries)]


def _entries(tools: Iterable[tuple[str, str | None, Any]], is_own: bool) -> list[Entry]:
    first: dict[str, str] = {}
    entries = []
    for path, name, content in tools:
        earlier = first.setdefault(name, path) if name else path
        twin = "" if earlier == path else earlier
        entries.append(Entry(path, name or "", content, is_own, twin))
    return entries


def _more(document: Any) -> str:
    result = document.get("result", document) if isinstance(document, dict) else None
    if isinstance(result, dict) and result.get("nextCursor"):
        return "The server has more tools (nextCursor) that are not in this file."
    return ""
