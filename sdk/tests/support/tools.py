"""A tool, a turn that keeps its events, and what running the tool with arguments gives."""

import asyncio
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel
from tooltrail.errors import (
    InvalidToolArgs,
    ValidationException,
)
from tooltrail.events import AdkToolExecutionEnd, AdkToolExecutionStart
from tooltrail.tools import Tool

CASE = "5aa31da6-9278-4da0-9f1a-61b8d3edc5cc"


class Filter(BaseModel):
    """An argument of a tool."""

    case: UUID
    limit: int = 10


class Context:
    """A turn that keeps its events."""

    def __init__(self) -> None:
        self.id = "turn-1"
        self.starts: list[AdkToolExecutionStart] = []
        self.ends: list[AdkToolExecutionEnd] = []

    def emit_tool_execution_start(self, event: AdkToolExecutionStart) -> None:
        self.starts.append(event)

    def emit_tool_execution_end(self, event: AdkToolExecutionEnd) -> None:
        self.ends.append(event)


def make_tool(**members: Any) -> Tool:
    """A tool that returns its arguments, but for these members."""
    return Tool(
        **{
            "name": "search",
            "description": "Searches.",
            "input_schema": {"type": "object", "additionalProperties": True},
            "handler": lambda args, ctx, meta: args,
            **members,
        }
    )


def run(tool: Tool, args: Any, ctx: Context | None = None) -> Any:
    """Run the tool as `execute` does, from sync code."""
    return asyncio.run(execute(tool, args, ctx or Context()))


async def execute(tool: Tool, args: Any, ctx: Context) -> Any:
    """Run the tool for a turn, and return its result."""
    return await tool.executor(ctx)(args)


def faults(error: BaseException) -> list[tuple[tuple[str | int, ...], str]]:
    """Path and type of each violation of arguments that an error has as its cause."""
    assert isinstance(error.__cause__, ValidationException)
    return [(detail.path, detail.type) for detail in error.__cause__.details]


def refused(tool: Tool, args: Any) -> list[tuple[tuple[str | int, ...], str]]:
    """The `faults` of arguments that the tool refuses."""
    with pytest.raises(InvalidToolArgs) as caught:
        run(tool, args)
    return faults(caught.value)
