"""The members of events, from the classes that the SDK writes with and the server reads with."""

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel
from tooltrail.events import (
    BIGINT_MAX,
    CONTRACT_VERSION,
    ContextEvent,
    Decider,
    Gap,
    GuardReport,
    Party,
    ToolCallDecision,
    ToolDefinitions,
    ToolExecutionEnd,
    ToolExecutionStart,
)
from tooltrail.guard.violations import Violation

from docs.site.reference.markdown import prose, schema_type, table

_ABOUT_CALLS = (ToolExecutionStart, ToolExecutionEnd, ToolCallDecision)
_PARTS: tuple[type[BaseModel], ...] = (GuardReport, Violation, Decider, Party)


def events() -> Iterator[str]:
    """The page."""
    yield "# Members of events\n"
    yield (
        f"Version {CONTRACT_VERSION} of [the event contract](/events.md), from its classes in the"
        " SDK. Each member may also have its camelCase name. Other members are kept byte for byte"
        " and not indexed.\n"
    )
    yield f"## Every event about a call\n\n{_text(ContextEvent)}\n"
    yield from _members(ContextEvent)
    for event in _ABOUT_CALLS:
        yield f"## `{event.model_fields['type'].default}`\n\n{_text(event)}\n"
        yield "Beside the members of every event about a call:\n"
        yield from _members(event, without=ContextEvent)
    for other in (ToolDefinitions, Gap):
        yield f"## `{other.model_fields['type'].default}`\n\n{_text(other)}\n"
        yield from _members(other)
    yield "## Parts\n"
    for part in _PARTS:
        yield f"### `{part.__name__}`\n\n{_text(part)}\n"
        yield from _members(part)


def _text(event: type[BaseModel]) -> str:
    return prose(" ".join((event.__doc__ or "").split()))


def _members(event: type[BaseModel], without: type[BaseModel] | None = None) -> Iterator[str]:
    schema = event.model_json_schema(by_alias=False)
    common = without.model_fields if without is not None else {}
    rows = [
        (
            f"`{name}`",
            "yes" if name in schema.get("required", ()) or name == "type" else "",
            _type(member),
            _limits(member),
        )
        for name, member in sorted(schema["properties"].items(), key=lambda each: each[0] != "type")
        if name not in common
    ]
    yield from table(("Member", "Required", "Type", "Limits"), rows)


def _type(member: dict[str, Any]) -> str:
    if "const" in member:
        return f"`{member['const']}`"
    options = [each for each in member.get("anyOf", (member,)) if each.get("type") != "null"]
    return " or ".join(dict.fromkeys(schema_type(each) for each in options))


def _limits(member: dict[str, Any]) -> str:
    limits: dict[str, Any] = {}
    for each in member.get("anyOf", (member,)):
        limits |= each
    told = []
    for least, most, unit in (
        ("minLength", "maxLength", "characters"),
        ("minItems", "maxItems", "items"),
        ("minimum", "maximum", ""),
    ):
        low, high = limits.get(least), limits.get(most)
        if "exclusiveMinimum" in limits and least == "minimum":
            low = f"more than {limits['exclusiveMinimum']}"
        high = "2^63 - 1" if high == BIGINT_MAX else high
        if low is not None or high is not None:
            span = f"{low} to {high}" if None not in (low, high) else f"up to {high}"
            told.append(f"{span} {unit}".strip())
    return ", ".join(told)
