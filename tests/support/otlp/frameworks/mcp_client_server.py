"""An MCP client and server of the Python SDK, in one process or as two services.

`both`: in one process. `client`: over stdio, with this file as `server` in a process of its own,
whose spans it exports itself; the two share nothing but the trace context that travels in `_meta`.
With `content` after it, the server has the middleware of docs/frameworks/mcp.md.
"""

import asyncio
import json
import os
import sys

from mcp import Client, StdioServerParameters
from mcp.server import MCPServer
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
server = MCPServer("weather")


@server.tool()
def get_weather(city: str) -> dict[str, float]:
    """The weather of a city."""
    return {"celsius": 22.5}


@server.tool()
def book_flight(to: str) -> str:
    """Book a flight."""
    raise ValueError("no such flight")


async def with_content(ctx, call_next):
    span = trace.get_current_span()
    try:
        result = await call_next(ctx)
    except asyncio.CancelledError:  # by the client's notifications/cancelled
        span.set_attribute("error.type", "cancelled")
        raise
    if ctx.method == "tools/call":
        span.set_attribute("gen_ai.tool.call.arguments", json.dumps(ctx.params["arguments"]))
        shown = result if isinstance(result, dict) else result.model_dump(mode="json")
        span.set_attribute("gen_ai.tool.call.result", json.dumps(shown))
    return result


async def call_tools(target):
    async with Client(target) as client:
        with trace.get_tracer("agent").start_as_current_span("invoke_agent traveller"):
            await client.call_tool("get_weather", {"city": "London"})
            await client.call_tool("get_weather", {"city": "Paris"})
            result = await client.call_tool("book_flight", {"to": "London"})
            assert result.is_error


role, *options = sys.argv[1:]
if "content" in options:
    server._lowlevel_server.middleware.append(with_content)
if role == "server":
    server.run()
elif role == "both":
    asyncio.run(call_tools(server))
else:
    arguments = [__file__, "server", *options]
    parameters = StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))
    asyncio.run(call_tools(parameters))
provider.shutdown()
