"""FastMCP's servers: a middleware.

server = FastMCP("weather", middleware=[TooltrailMiddleware(trail)])
"""

from typing import Any

from fastmcp.server.middleware import Middleware

from tooltrail.integrations.running import Running, read_json
from tooltrail.trail import Trail


class TooltrailMiddleware(Middleware):
    """Records the tools that a server runs, once each: give it to the outermost server only.

    A mounted tool has the name that clients call it by. A result that reports an error is a failed
    call. FastMCP names neither agent nor model.
    """

    def __init__(self, trail: Trail) -> None:
        self._running = Running(trail)

    async def on_call_tool(self, context: Any, call_next: Any) -> Any:
        """Record one call of a tool. Raises what the tool raises."""
        message = context.message
        with self._running.around(message.name, message.arguments or {}) as outcome:
            result = await call_next(context)
            with self._running.harmless():
                if result.is_error:
                    outcome.failure = "\n".join(_texts(result)) or "the tool reports an error"
                outcome.output = _plain(result)
        return result


def _plain(result: Any) -> Any:
    """The value that the tool returned, where FastMCP keeps it."""
    if result.structured_content is not None:
        return result.structured_content
    texts = _texts(result)
    return read_json(texts[0]) if len(texts) == len(result.content) == 1 else result.content


def _texts(result: Any) -> list[str]:
    return [block.text for block in result.content if hasattr(block, "text")]
