"""Records of finished calls, and the tools with which a model reads their results."""

import asyncio
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime
from typing import Any

import pytest
from tooltrail.errors import (
    InvalidInitialToolCallValue,
    InvalidInitialToolValue,
    InvalidToolArgs,
    ValidationException,
)
from tooltrail.testing import MemoryTrail
from tooltrail.tools import (
    ArtifactTool,
    InMemorySpoolReader,
    SpooledArtifact,
    SpooledJsonArtifact,
    Tool,
    ToolCall,
    ToolRegistry,
    compute_call_id,
    forge_tools,
)

AT = datetime(2026, 11, 20, 10, 15, tzinfo=UTC)


class Picture:
    """Media, by its shape."""

    mime_type = "image/png"

    def stream(self) -> list[bytes]:
        return [b"png"]


def members(**changes: Any) -> dict[str, Any]:
    given = {
        "id": "call-1",
        "tool": "search",
        "args": {"query": "hats"},
        "checksum": compute_call_id("search", {"query": "hats"}),
        "is_complete": True,
        "is_error": False,
        "results": "no hats",
        "created_at": AT,
        "updated_at": "2026-11-20T10:15:00Z",
        "completed_at": AT,
    } | changes
    return {name: value for name, value in given.items() if value is not ...}


def artifact(text: str, kind: type[SpooledArtifact] = SpooledArtifact) -> SpooledArtifact:
    return kind(InMemorySpoolReader(text))


def faults(**changes: Any) -> list[tuple[str | int, ...]]:
    with pytest.raises(InvalidInitialToolCallValue) as raised:
        ToolCall(**members(**changes))
    cause = raised.value.__cause__
    assert isinstance(cause, ValidationException)
    return [detail.path for detail in cause.details]


def test_tool_call_copies_its_values_and_is_read_only() -> None:
    args = {"query": ["hats"]}
    call = ToolCall(**members(args=args, payload={"sig": 1}, replay_compatibility="gemini"))
    args["query"].append("coats")

    assert call.args == {"query": ["hats"]}
    assert call.updated_at == AT
    assert (call.from_artifact_tool, call.inline) == (False, False)
    assert (call.payload, call.replay_compatibility) == ({"sig": 1}, "gemini")
    assert ToolCall.is_tool_call(call)
    assert not ToolCall.is_tool_call(members())
    with pytest.raises(FrozenInstanceError):
        call.tool = "other"  # type: ignore[misc]  # what mypy would refuse


def test_arguments_are_accepted_as_json_text() -> None:
    assert ToolCall(**members(args='{"query": "hats"}')).args == {"query": "hats"}


@pytest.mark.parametrize(
    "results",
    ["", "text", artifact("a"), [artifact("a"), artifact("[]", SpooledJsonArtifact)], Picture()],
)
def test_results_of_one_kind_are_accepted(results: Any) -> None:
    assert ToolCall(**members(results=results)).results is results


@pytest.mark.parametrize(
    "results", [None, [], b"bytes", 5, ["text"], [artifact("a"), Picture()], {"a": 1}]
)
def test_unsupported_results_are_rejected(results: Any) -> None:
    assert faults(results=results) == [("results",)]


@pytest.mark.parametrize("name", sorted(members()))
def test_each_member_is_required(name: str) -> None:
    assert faults(**{name: ...}) == [(name,)]


@pytest.mark.parametrize(
    "changes",
    [
        {"id": ""},
        {"tool": 5},
        {"args": "[1]"},
        {"args": "{"},
        {"args": [1]},
        {"is_error": "yes"},
        {"created_at": datetime(2026, 1, 1)},  # noqa: DTZ001  # just that is refused
        {"created_at": 1_700_000_000},
        {"completed_at": "yesterday"},
        {"payload": {"sig": 1}},
        {"replay_compatibility": ""},
        {"colour": "blue"},
    ],
)
def test_invalid_members_are_rejected(changes: dict[str, Any]) -> None:
    assert faults(**changes) == [(name,) for name in changes]


def test_all_invalid_members_are_named_together() -> None:
    assert faults(id=..., tool="", inline=3) == [("id",), ("tool",), ("inline",)]


TEXT = "alpha\nbeta\ngamma"


def forged() -> ToolRegistry:
    return forge_tools(
        [
            ToolCall(**members(id="text", results=artifact(TEXT))),
            ToolCall(**members(id="json", results=artifact("[1]", SpooledJsonArtifact))),
            ToolCall(**members(id="said", results="just text")),
            ToolCall(**members(id="many", results=[artifact("a"), artifact("b")])),
            ToolCall(**members(id="asked", results=artifact("a"), from_artifact_tool=True)),
        ]
    )


@pytest.mark.parametrize(
    ("name", "args", "answer"),
    [
        ("artifact_head", {}, TEXT),
        ("artifact_head", {"n": 1}, "alpha"),
        ("artifact_tail", {"n": 2}, "beta\ngamma"),
        ("artifact_grep", {"pattern": "^b"}, "beta"),
        ("artifact_grep", {"pattern": "^B", "flags": "imsu"}, "beta"),
        ("artifact_grep", {"pattern": "^B"}, "(empty list)"),
        ("artifact_cat", {}, TEXT),
        ("artifact_cat", {"start": 1, "end": 2}, "beta"),
        ("artifact_byte_length", {}, "16"),
        ("artifact_line_count", {}, "3"),
        ("artifact_estimate_tokens", {"encoding": "cl100k_base"}, "4"),
    ],
)
def test_artifact_tools_return_parts_of_a_result(
    name: str, args: dict[str, Any], answer: str
) -> None:
    trail = MemoryTrail()
    tool = forged().get(name)
    assert tool is not None

    answered = asyncio.run(tool.executor(trail.context("turn-1"))({"callId": "text", **args}))

    assert answered == answer
    assert [event["tool_name"] for event in trail.events] == [name, name]
    assert trail.models


def test_seven_artifact_tools_are_ephemeral_and_replace_earlier_ones() -> None:
    tools = forged().all()

    assert [tool.name.removeprefix("artifact_") for tool in tools] == (
        ["head", "tail", "grep", "cat", "byte_length", "line_count", "estimate_tokens"]
    )
    assert all(isinstance(tool, ArtifactTool) and tool.ephemeral for tool in tools)
    merged = ToolRegistry.merge([forged(), forged()])
    assert [tool.name for tool in merged.all()] == [tool.name for tool in tools]
    merged.prune_ephemeral()
    assert merged.all() == []


def test_artifact_tools_accept_only_calls_with_a_single_artifact() -> None:
    for tool in forged().all():
        schema = tool.describe()["inputSchema"]
        assert schema["properties"]["callId"]["enum"] == ["text", "json"]
        with pytest.raises(InvalidToolArgs):
            asyncio.run(tool.validate({"callId": "asked", "pattern": "a"}))
    assert forge_tools([ToolCall(**members())]).all() == []
    of_json = forge_tools(
        [
            ToolCall(**members(id="text", results=artifact(TEXT))),
            ToolCall(**members(id="json", results=artifact("[1]", SpooledJsonArtifact))),
        ],
        SpooledJsonArtifact,
    )
    parameter = of_json.all()[0].describe()["inputSchema"]["properties"]["callId"]
    assert parameter["enum"] == ["json"]


@pytest.mark.parametrize("flags", ["g", "y", "gi"])
def test_stateful_search_flags_are_rejected(flags: str) -> None:
    grep = forged().get("artifact_grep")
    assert grep is not None
    with pytest.raises(InvalidToolArgs):
        asyncio.run(grep.validate({"callId": "text", "pattern": "a", "flags": flags}))


def test_artifact_tool_rejects_an_artifact_constructor() -> None:
    given: dict[str, Any] = {
        "name": "count",
        "description": "Count the lines",
        "input_schema": {"type": "object"},
        "handler": lambda args, ctx, meta: "3",
    }
    assert Tool.is_tool(ArtifactTool(**given))
    with pytest.raises(InvalidInitialToolValue):
        ArtifactTool(**given, artifact_constructor=lambda: SpooledArtifact)
