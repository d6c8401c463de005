"""Reads tool definitions of providers: OpenAI (two forms), Anthropic, and MCP's `tools/list`.

Pure. A tool's members show which form it has; one list may have several forms. A definition has a
name, a description and an input schema (MCP: also an output schema), and does not set the other
members of a contract. Members without a counterpart in a contract (`strict`, a title,
annotations) go into its meta under the provider's name; `tools_registry.exchange.providers`
writes them back.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from tools_registry.exchange.document import ReadTool
from tools_registry.schemas import ToolContract, name_in


class Form(NamedTuple):
    """A provider's form: its label, and the mapping of its members."""

    label: str
    members: Mapping[str, str]
    """The contract's member for each member of the form."""
    labels: tuple[str, ...]
    """Members that are stored in meta."""
    meta: str
    """The member of meta in which they are stored."""
    silent: tuple[str, ...] = ("type",)
    """Members without information about the tool."""


CHAT: Final = Form(
    "OpenAI, chat completions", {"parameters": "input_schema"}, ("strict",), "openai"
)
RESPONSES: Final = Form("OpenAI, responses", {"parameters": "input_schema"}, ("strict",), "openai")
ANTHROPIC: Final = Form("Anthropic", {"input_schema": "input_schema"}, ("strict",), "anthropic")
MCP: Final = Form(
    "MCP tools/list",
    {"inputSchema": "input_schema", "outputSchema": "output_schema"},
    ("title", "annotations", "_meta", "icons", "execution"),
    "mcp",
    (),
)

_ANYTHING: Final = {"type": "object", "properties": {}}
"""The input schema of a definition without parameters."""


def definitions_in(document: Any) -> Iterator[tuple[str, Any]]:
    """Path and definition of each tool in a document; a single definition counts as a list."""
    definitions, place = document, ""
    if isinstance(document, dict):
        result = document.get("result")
        if isinstance(result, dict) and "tools" in result:  # a JSON-RPC response
            definitions, place = result["tools"], "result.tools"
        elif "tools" in document:
            definitions, place = document["tools"], "tools"
        else:
            yield "$", document
            return
    for index, each in enumerate(definitions if isinstance(definitions, list) else ()):
        yield f"{place or '$'}[{index}]", each


def read_definition(path: str, entry: Any) -> ReadTool:
    """Read a provider's definition of a tool. Never raises: errors are in the tool's problems."""
    form = form_of(entry)
    if form is None:
        tool = ReadTool(path, name_in(entry) or "")
        tool.refuse(f"{path}: {_why_no_form(entry)}")
        return tool
    notes: list[str] = []
    if form is CHAT:
        notes += [f"{path}.{word}" for word in entry if word not in ("type", "function")]
        path, entry = f"{path}.function", entry["function"]
    name = name_in(entry)
    tool = ReadTool(path, name or "")
    if name is None:
        tool.refuse(f"{path}.name: is not a valid tool name")
    tool.places = {own: foreign for foreign, own in form.members.items()}
    members: dict[str, Any] = {
        "description": entry.get("description") or "",
        "input_schema": _ANYTHING,
        **{
            own: entry[foreign]
            for foreign, own in form.members.items()
            if entry.get(foreign) is not None
        },
    }
    if labels := {word: entry[word] for word in form.labels if entry.get(word) is not None}:
        members["meta"] = {form.meta: labels}
    known = {"name", "description", *form.members, *form.labels, *form.silent}
    notes += [f"{path}.{word}" for word in entry if word not in known]
    try:
        ToolContract.model_validate({"name": "checked above", **members})
    except ValidationError as error:
        for problem in error.errors(include_url=False, include_input=False, include_context=False):
            first, *deeper = (str(part) for part in problem["loc"])
            where = ".".join([tool.places.get(first, first), *deeper])
            tool.refuse(f"{path}.{where}: {problem['msg'].removeprefix('Value error, ')}")
    tool.members = members
    tool.notes = [f"not imported: {place}" for place in notes]
    return tool


def defined_name(entry: Any) -> str | None:
    """The tool's name in a definition; None if missing or invalid."""
    return name_in(entry["function"] if form_of(entry) is CHAT else entry)


def form_of(entry: Any) -> Form | None:
    """The form of a definition; None if unknown."""
    if not isinstance(entry, dict):
        return None
    if isinstance(entry.get("function"), dict):
        return CHAT
    if "inputSchema" in entry:
        return MCP
    if "input_schema" in entry:
        return ANTHROPIC
    if "parameters" in entry or entry.get("type") == "function":
        return RESPONSES
    return None


def _why_no_form(entry: Any) -> str:
    if not isinstance(entry, dict):
        return "is not a JSON object"
    kind = entry.get("type")
    if isinstance(kind, str) and kind not in ("function", "custom", "object"):
        return f"is a tool that the provider runs ({kind[:60]}) and has no schema"
    return "has no function, parameters, input_schema or inputSchema"
