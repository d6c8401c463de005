"""Writes tool definitions in providers' formats, with remarks on what a format cannot express.

Pure. Whatever a provider would refuse or cannot express is a remark beside the definition; nothing
is dropped silently. Sources: OpenAI's and Anthropic's references and the errors of their APIs, MCP
2025-11-25.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tools_registry.exchange.definitions import ANTHROPIC, CHAT, MCP, RESPONSES, Form
from tools_registry.schemas import ToolContract

_UNIONS: Final = ("oneOf", "anyOf", "allOf")
_NOT_STRICT: Final = frozenset(
    {
        *("allOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas"),
        *("patternProperties", "propertyNames", "minProperties", "maxProperties"),
        *("unevaluatedProperties", "unevaluatedItems", "contains", "minContains", "maxContains"),
        *("prefixItems", "uniqueItems", "dependencies", "additionalItems"),
    }
)
_BELOW: Final = ("items", "additionalProperties")
_STRICT_MAX: Final = 5_000  # properties, OpenAI
_STRICT_DEPTH: Final = 10


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider: its form of definitions and its limits."""

    form: Form
    write: Callable[[ToolContract, str], tuple[dict[str, Any], list[str]]]
    """Writes a contract under a name in that form; returns the definition and remarks."""
    name_pattern: re.Pattern[str]
    name_max: int
    wrap: Callable[[list[dict[str, Any]]], Any]
    """Makes one document of all definitions."""
    lacks: str
    """What the provider's form cannot express, as text."""
    description_max: int = 0
    """Maximum characters of a description; 0: no known limit."""


@dataclass(frozen=True, slots=True)
class Definition:
    """One tool for one provider."""

    name: str
    """The name in the registry."""
    document: dict[str, Any]
    remarks: tuple[str, ...] = ()
    """What differs from the contract, is missing, or will be refused by the provider."""


def define(contracts: Sequence[ToolContract], provider: Provider) -> list[Definition]:
    """Definitions of contracts for a provider; invalid names are replaced by unique valid ones."""
    taken = {one.name for one in contracts}
    defined = []
    for contract in contracts:
        name, remarks = contract.name, []
        if problem := _name_problem(name, provider):
            name = _another(name, provider, taken)
            taken.add(name)
            remarks.append(f"the name {problem}; exported as {name}, and calls use that name")
        remarks += _remarks(contract, provider)
        document, more = provider.write(contract, name)
        defined.append(Definition(contract.name, document, (*remarks, *more)))
    return defined


def _name_problem(name: str, provider: Provider) -> str:
    if not provider.name_pattern.fullmatch(name):
        return "has unsupported characters"
    if len(name) > provider.name_max:
        return f"is longer than {provider.name_max} characters"
    return ""


def _another(name: str, provider: Provider, taken: set[str]) -> str:
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", name)[: provider.name_max]
    another, number = plain, 1
    while another in taken:
        number += 1
        end = f"_{number}"
        another = plain[: provider.name_max - len(end)] + end
    return another


def _remarks(contract: ToolContract, provider: Provider) -> Iterator[str]:
    if provider.description_max and len(contract.description) > provider.description_max:
        yield (
            f"the description has {len(contract.description):,} characters; the provider rejects"
            f" more than {provider.description_max:,}"
        )
    schema = contract.input_schema
    if schema.get("type") != "object":
        yield "the input schema does not have type object; the provider rejects it"
    if provider.form is not MCP and (unions := [word for word in _UNIONS if word in schema]):
        words = " and ".join(unions)
        yield f"the input schema has {words} at the top level; the provider rejects it"


def _write_chat(contract: ToolContract, name: str) -> tuple[dict[str, Any], list[str]]:
    inner, remarks = _function(contract, name)
    return {"type": "function", "function": inner}, remarks


def _write_response(contract: ToolContract, name: str) -> tuple[dict[str, Any], list[str]]:
    inner, remarks = _function(contract, name)
    # If it is missing, OpenAI assumes true.
    return {"type": "function", "strict": False, **inner}, remarks


def _function(contract: ToolContract, name: str) -> tuple[dict[str, Any], list[str]]:
    schema = contract.input_schema
    function: dict[str, Any] = {
        "name": name,
        "description": contract.description,
        "parameters": schema,
    }
    remarks = []
    if strict_problems := list(not_strict(schema)):
        shown = "; ".join(strict_problems[:3])
        more = f"; and {len(strict_problems) - 3} more" if len(strict_problems) > 3 else ""
        remarks.append(f"strict mode rejects the input schema: {shown}{more}")
    wanted = _labels(contract, CHAT).get("strict")
    if wanted is not None:
        function["strict"] = wanted is True and not strict_problems
    return function, remarks


def _write_anthropic(contract: ToolContract, name: str) -> tuple[dict[str, Any], list[str]]:
    written = {
        "name": name,
        "description": contract.description,
        "input_schema": contract.input_schema,
    }
    return {**written, **_labels(contract, ANTHROPIC)}, []


def _write_mcp(contract: ToolContract, name: str) -> tuple[dict[str, Any], list[str]]:
    written: dict[str, Any] = {
        "name": name,
        "description": contract.description,
        "inputSchema": contract.input_schema,
    }
    remarks = []
    output = contract.output_schema
    if output is not None and output.get("type") == "object":
        written["outputSchema"] = output
    elif output is not None:
        remarks.append("the output schema does not have type object and is omitted")
    return {**written, **_labels(contract, MCP)}, remarks


def _labels(contract: ToolContract, form: Form) -> dict[str, Any]:
    """The members that an import of this form has stored in meta."""
    kept = contract.meta.get(form.meta)
    if not isinstance(kept, dict):
        return {}
    return {word: kept[word] for word in form.labels if word in kept}


def not_strict(schema: Any) -> Iterator[str]:
    """Why OpenAI's strict mode refuses a schema: each problem with its path."""
    waiting: list[tuple[str, Any, int]] = [("$", schema, 0)]
    properties_seen = 0
    while waiting:
        path, node, depth = waiting.pop()
        if not isinstance(node, dict):
            continue
        for word in sorted(node.keys() & _NOT_STRICT):
            yield f"{word} at {path}"
        if path == "$" and "anyOf" in node:
            yield "anyOf at $"
        properties = node.get("properties") or {}
        is_object = "object" in _types(node) or "properties" in node
        if is_object:
            properties_seen += len(properties)
            if node.get("additionalProperties") is not False:
                yield f"additionalProperties is not false at {path}"
            if set(properties) - set(node.get("required", ())):
                yield f"not all properties are required at {path}"
            if depth >= _STRICT_DEPTH:
                yield f"more than {_STRICT_DEPTH} levels at {path}"
        waiting += [(f"{path}.{name}", each, depth + 1) for name, each in properties.items()]
        waiting += [(f"{path}[*]", node[word], depth + 1) for word in _BELOW if word in node]
        waiting += [(path, each, depth) for each in node.get("anyOf", ())]
        waiting += [
            (f"$defs.{name}", each, depth)
            for word in ("$defs", "definitions")
            for name, each in (node.get(word) or {}).items()
        ]
    if properties_seen > _STRICT_MAX:
        yield f"more than {_STRICT_MAX:,} properties"


def _types(node: dict[str, Any]) -> Sequence[str]:
    declared = node.get("type", ())
    return (declared,) if isinstance(declared, str) else declared


_OF_MODELS: Final = re.compile(r"[A-Za-z0-9_-]+")
_FLAGS: Final = "the flags (trusted, ephemeral, on_collision) and labels"
_LACKS: Final = f"output schemas, {_FLAGS}"

PROVIDERS: Final[dict[str, Provider]] = {
    "openai": Provider(
        form=CHAT,
        write=_write_chat,
        name_pattern=_OF_MODELS,
        name_max=64,
        wrap=list,
        lacks=_LACKS,
        description_max=1024,
    ),
    "openai-responses": Provider(
        form=RESPONSES,
        write=_write_response,
        name_pattern=_OF_MODELS,
        name_max=64,
        wrap=list,
        lacks=_LACKS,
        description_max=1024,
    ),
    "anthropic": Provider(
        form=ANTHROPIC,
        write=_write_anthropic,
        name_pattern=_OF_MODELS,
        name_max=128,
        wrap=list,
        lacks=_LACKS,
    ),
    "mcp": Provider(
        form=MCP,
        write=_write_mcp,
        name_pattern=re.compile(r"[A-Za-z0-9_.-]+"),
        name_max=128,
        wrap=lambda tools: {"tools": tools},
        lacks=_FLAGS,
    ),
}
"""Providers by their names in URLs."""
