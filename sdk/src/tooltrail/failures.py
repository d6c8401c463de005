"""Says of an exception what the contracts' `ToolErrorDetail` asks: which kind, in which words."""

import asyncio
from typing import Any


def error_detail(error: BaseException) -> dict[str, Any]:
    """The members of a `ToolErrorDetail` for what a tool raised."""
    return {"type": _kind(error), "message": str(error), "cause": type(error).__name__}


def _kind(error: BaseException) -> str:
    match error:
        case TimeoutError():
            return "TIMEOUT"
        case asyncio.CancelledError():
            return "RETRYABLE"
        case ConnectionError():
            return "UPSTREAM"
        case ValueError() | TypeError():
            return "VALIDATION"
        case _:
            return "FATAL"
