"""Code written for the ADK type-checks under mypy strict: tools, custom contexts."""

import asyncio
from typing import Any, assert_type

from tooltrail.events import AdkToolExecutionEnd, AdkToolExecutionStart
from tooltrail.testing import MemoryTrail
from tooltrail.tools import (
    ExecutionContext,
    InMemorySpoolReader,
    Registry,
    SpooledArtifact,
    SpooledJsonArtifact,
    Tool,
    ToolRegistry,
    compute_call_id,
)


class Turn:
    """A host's own context: anything with these three members will do."""

    id = "turn-1"

    def __init__(self) -> None:
        self.durations_ms: list[float] = []

    def emit_tool_execution_start(self, event: AdkToolExecutionStart, /) -> None:
        assert_type(event.call_id, str)

    def emit_tool_execution_end(self, event: AdkToolExecutionEnd, /) -> None:
        self.durations_ms.append(event.duration_ms)


def lookup(args: dict[str, Any], ctx: Turn, meta: Registry) -> str:
    """A handler names the context it was written for."""
    return f"{args['key']} in {meta.get('table')}"


def make_tool() -> Tool:
    return Tool(
        name="lookup",
        description="Look a key up",
        input_schema={"type": "object", "properties": {"key": {"type": "string"}}},
        handler=lookup,
        artifact_constructor=lambda: SpooledJsonArtifact,
        meta={"table": "people"},
        on_collision="replace",
    )


def test_tool_runs_in_any_context() -> None:
    turn = Turn()
    contexts: list[ExecutionContext] = [turn, MemoryTrail().context("turn-2")]

    answers = [asyncio.run(_call(make_tool(), context)) for context in contexts]

    assert answers == ["a in people", "a in people"]
    assert len(turn.durations_ms) == 1


async def _call(tool: Tool, context: ExecutionContext) -> Any:
    return await tool.executor(context)({"key": "a"})


def test_is_tool_narrows_the_type() -> None:
    value: object = make_tool()
    assert Tool.is_tool(value)
    assert_type(value, Tool)
    assert_type(value.describe(), dict[str, Any])


def test_registries_and_artifacts_are_typed() -> None:
    registry = ToolRegistry.merge([ToolRegistry([make_tool()])], on_collision="keep")
    artifact = SpooledArtifact(InMemorySpoolReader("one\ntwo"))

    assert_type(registry.get("lookup"), Tool | None)
    assert_type(asyncio.run(artifact.head(1)), list[str])
    assert_type(compute_call_id("lookup", {"key": "a"}), str)


def test_member_names_and_values_are_type_checked() -> None:
    def wrong() -> None:
        Tool(name=1)  # type: ignore[arg-type]  # mypy must refuse it
        Tool(on_collision="merge")  # type: ignore[arg-type]  # mypy must refuse it
        make_tool().name = "other"  # type: ignore[misc]  # mypy must refuse it

    assert callable(wrong)
