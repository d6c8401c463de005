"""What the recorded rows do not cover: construction, arguments, pydantic schemas, events."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict
from unittest.mock import Mock
from uuid import UUID

import pytest
from pydantic import AliasChoices, BaseModel, ConfigDict, Field
from tooltrail.errors import (
    InvalidInitialToolValue,
    InvalidToolArgs,
    ToolDownstreamError,
    TooltrailError,
)
from tooltrail.tools import SpooledArtifact, Tool, ToolRegistry, compute_call_id

from sdk.tests.support.tools import CASE, Context, Filter, execute, faults, make_tool, refused, run

# --- construction


def test_all_problems_of_a_tool_are_reported_together() -> None:
    with pytest.raises(InvalidInitialToolValue) as caught:
        Tool(name="", trusted="yes", colour="red", meta=[])  # type: ignore[arg-type]  # what mypy would refuse
    assert {path[0] for path, _ in faults(caught.value)} == {
        "name", "description", "input_schema", "handler", "trusted", "colour", "meta",
    }  # fmt: skip  # by line as they belong together
    assert '"description" is required and ' in str(caught.value.__cause__)


def test_error_text_contains_its_code() -> None:
    error = InvalidToolArgs()
    assert str(error) == f"E_INVALID_TOOL_ARGS [E_INVALID_TOOL_ARGS]: {error.message}"
    assert error.help is None
    assert isinstance(error, TooltrailError)


def test_tool_is_read_only() -> None:
    tool = make_tool()
    for member in ("name", "meta", "trusted", "handler", "anything"):
        with pytest.raises(AttributeError):
            setattr(tool, member, 1)
    assert not hasattr(tool, "handler")


def test_non_tools_are_rejected() -> None:
    assert Tool.is_tool(make_tool())
    assert not Tool.is_tool({"name": "search"})
    with pytest.raises(TypeError):
        ToolRegistry().register({"name": "search"})  # type: ignore[arg-type]  # what mypy would refuse


class Lookalike:
    """Has an artifact's methods and no kinship with ours."""

    head = tail = grep = cat = byte_length = line_count = estimate_tokens = lambda self: None


@pytest.mark.parametrize(
    ("resolver", "accepted"),
    [
        (lambda: SpooledArtifact, True),
        (lambda: Lookalike, True),
        (lambda: dict, False),
        (lambda: Lookalike(), False),
        (lambda: 1 / 0, False),
        (SpooledArtifact, False),  # not a resolver: it needs a reader
        ("x", False),
    ],
)
def test_artifact_resolver_is_called_once(resolver: Any, accepted: bool) -> None:
    if callable(resolver):
        resolver = Mock(wraps=resolver)
    if accepted:
        tool = make_tool(artifact_constructor=resolver)
        run(tool, {})
        assert tool.artifact_constructor is resolver
    else:
        with pytest.raises(InvalidInitialToolValue):
            make_tool(artifact_constructor=resolver)
    if isinstance(resolver, Mock):
        assert resolver.call_count == 1


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def shared(levels: int) -> dict[str, Any]:
    """Few objects, and 2^levels of them when written out."""
    schema: dict[str, Any] = {}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema, "b": schema}}
    return schema


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"type": "object", "properties": 5},
        {"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}},
        {"type": "object", "properties": {"a": {"$ref": "http://localhost:1/s.json"}}},
        {"type": "object", "properties": {"a": {"pattern": "(?=look)around"}}},
        nested(10_000),
        shared(40),
        {"type": "object", "properties": {"a": {"default": object()}}},
        int,
        list[int],
        "object",
    ],
)
def test_unusable_input_schemas_are_rejected_on_construction(schema: Any) -> None:
    with pytest.raises(InvalidInitialToolValue):
        make_tool(input_schema=schema)


# --- arguments against JSON Schema


def test_all_violations_of_the_arguments_are_listed() -> None:
    tool = make_tool(
        input_schema={
            "type": "object",
            "properties": {
                "q": {"type": "string", "minLength": 2},
                "n": {"type": "integer"},
                "list": {"items": {"type": "string"}},
            },
            "required": ["q", "n"],
        }
    )
    assert refused(tool, {"q": "x", "extra": 1, "list": [1]}) == [
        (("n",), "MISSING_REQUIRED"),
        (("q",), "CONSTRAINT_VIOLATION"),
        (("list", 0), "WRONG_TYPE"),
        (("extra",), "UNKNOWN_FIELD"),
    ]


@pytest.mark.parametrize(
    ("schema", "accepts"),
    [
        ({}, False),
        ({"additionalProperties": False}, False),
        ({"additionalProperties": True}, True),
        ({"additionalProperties": {"type": "integer"}}, True),
        ({"patternProperties": {"^ex": {}}}, True),
        ({"allOf": [{"properties": {"extra": {}}}]}, True),
        ({"$ref": "#/$defs/e", "$defs": {"e": {"properties": {"extra": {}}}}}, True),
        ({"allOf": [{"properties": {"other": {}}}]}, False),
    ],
)
def test_undeclared_arguments_are_rejected_unless_the_schema_allows_extras(
    schema: dict[str, Any], accepts: bool
) -> None:
    tool = make_tool(input_schema={"type": "object", "properties": {"q": {}}, **schema})
    if accepts:
        assert run(tool, {"q": 1, "extra": 1}) == {"q": 1, "extra": 1}
    else:
        assert refused(tool, {"q": 1, "extra": 1})


def test_defaults_fill_missing_arguments() -> None:
    tool = make_tool(
        input_schema={
            "type": "object",
            "$defs": {"page": {"type": "object", "properties": {"size": {"default": 10}}}},
            "properties": {
                "page": {"$ref": "#/$defs/page"},
                "absent": {"type": "object", "properties": {"x": {"default": 1}}},
                "rows": {"type": "array", "items": {"$ref": "#/$defs/page"}},
                "tags": {"type": "array", "default": []},
                "self": {"$ref": "#"},
            },
        }
    )
    given = {"page": {}, "rows": [{}, {"size": 2}]}
    ctx = Context()
    filled = {"page": {"size": 10}, "rows": [{"size": 10}, {"size": 2}], "tags": []}
    result = run(tool, given, ctx)
    assert result == ctx.starts[0].args == filled
    assert given == {"page": {}, "rows": [{}, {"size": 2}]}
    assert ctx.starts[0].call_id == compute_call_id("search", given)
    result["tags"].append("changed by the handler")
    assert run(tool, given) == filled


def test_exponential_references_are_resolved_quickly() -> None:
    definitions: dict[str, Any] = {"d15": {"properties": {"x": {"default": 1}}}}
    for level in range(15):
        deeper = {"$ref": f"#/$defs/d{level + 1}"}
        definitions[f"d{level}"] = {"allOf": [deeper, dict(deeper)]}
    schema = {"type": "object", "$ref": "#/$defs/d0", "$defs": definitions}
    assert run(make_tool(input_schema=schema), {}) == {"x": 1}


def test_complete_arguments_are_passed_unchanged() -> None:
    args = {"q": {"deep": [1]}}
    assert run(make_tool(), args) is args


@pytest.mark.parametrize("args", [None, [], "x", 5, {"n": True}, {"n": "5"}, {"n": 1.5}])
def test_arguments_are_not_converted(args: Any) -> None:
    assert refused(
        make_tool(input_schema={"type": "object", "properties": {"n": {"type": "integer"}}}), args
    )


def test_values_without_json_form_fail_before_any_event() -> None:
    ctx = Context()
    with pytest.raises(TypeError):
        run(make_tool(), {"x": object()}, ctx)
    assert not ctx.starts


# --- arguments against pydantic types


@dataclass
class FilterDataclass:
    case: UUID
    limit: int = 10


class FilterDict(TypedDict):
    case: UUID
    limit: NotRequired[int]


def test_handler_receives_the_model_and_the_event_has_its_json() -> None:
    ctx = Context()
    result = run(make_tool(input_schema=Filter), {"case": CASE}, ctx)
    assert result == Filter(case=UUID(CASE))
    assert ctx.starts[0].args == {"case": CASE, "limit": 10}


@pytest.mark.parametrize("model", [Filter, FilterDataclass, FilterDict])
def test_typed_arguments_are_strict_and_closed(model: Any) -> None:
    tool = make_tool(input_schema=model)
    assert run(tool, {"case": CASE, "limit": 3})
    assert refused(tool, {"case": CASE, "limit": "3"}) == [(("limit",), "int_type")]
    assert refused(tool, {"case": CASE, "extra": 1}) == [(("extra",), "extra_forbidden")]
    assert refused(tool, {})
    assert refused(tool, None)
    assert refused(tool, {"case": "\ud800"})


def test_model_configuration_overrides_strict_and_closed() -> None:
    class Loose(BaseModel):
        model_config = ConfigDict(extra="allow", strict=False)
        limit: int

    class Closed(BaseModel):
        model_config = ConfigDict(extra="forbid")
        limit: int = Field(1, validation_alias=AliasChoices("limit", "max"))

    assert run(make_tool(input_schema=Loose), {"limit": "3", "extra": 1}).limit == 3
    assert run(make_tool(input_schema=Closed), {"max": 3}).limit == 3
    assert refused(make_tool(input_schema=Closed), {"x": 3}) == [(("x",), "extra_forbidden")]


# --- execution


def test_handler_exception_is_the_cause_of_the_downstream_error() -> None:
    ctx = Context()

    async def fail(args: Any, given: Any, meta: Any) -> str:
        raise KeyError("lost")

    with pytest.raises(ToolDownstreamError) as caught:
        run(make_tool(handler=fail), {}, ctx)
    assert isinstance(caught.value.__cause__, KeyError)
    assert [end.is_error for end in ctx.ends] == [True]


def test_cancellation_ends_the_call_and_propagates() -> None:
    ctx = Context()

    async def scenario() -> None:
        running = asyncio.Event()

        async def hang(args: Any, given: Any, meta: Any) -> None:
            running.set()
            await asyncio.Event().wait()

        task = asyncio.create_task(execute(make_tool(handler=hang), {}, ctx))
        await running.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    assert [end.is_error for end in ctx.ends] == [True]


def test_events_are_dumped_in_adk_form() -> None:
    ctx = Context()
    run(make_tool(), {"q": 1}, ctx)
    start = json.loads(ctx.starts[0].model_dump_json(by_alias=True))
    end = json.loads(ctx.ends[0].model_dump_json(by_alias=True))
    assert list(start) == ["toolName", "turnId", "callId", "args", "startedAt"]
    assert list(end) == [
        "toolName", "turnId", "callId", "startedAt", "endedAt", "durationMs", "isError",
    ]  # fmt: skip  # by line as they belong together
    assert start["startedAt"] == end["startedAt"]
