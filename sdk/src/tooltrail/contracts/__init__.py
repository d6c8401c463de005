"""The AI Core's tool contracts: the context of a call and its result."""

from tooltrail.contracts.failures import describe_failure, tool_error
from tooltrail.contracts.models import (
    ToolContext,
    ToolError,
    ToolErrorDetail,
    ToolErrorMeta,
    ToolErrorType,
    ToolOutput,
    ToolResult,
    ToolResultMeta,
)
from tooltrail.contracts.outputs import returns_tool_output

__all__ = [
    "ToolContext",
    "ToolError",
    "ToolErrorDetail",
    "ToolErrorMeta",
    "ToolErrorType",
    "ToolOutput",
    "ToolResult",
    "ToolResultMeta",
    "describe_failure",
    "returns_tool_output",
    "tool_error",
]
