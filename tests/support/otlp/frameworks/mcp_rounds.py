"""Calls of a real MCP server that ask for input, go on as a task, or are cancelled (2026-07-28).

    mcp_rounds.py <site-packages of our SDK> book|research|wait

`book`: the server asks for input once, then answers; the client of `mcp` makes both requests by
itself. `research`: the server returns a task, and an extension of the client polls it by its id.
`wait`: the caller gives up, so that the client sends `notifications/cancelled`. Each is recorded
by our SDK and by the spans of client and server, with the middleware of docs/frameworks/mcp.md.
Prints the number of requests that the server got, and whether it was told that the call is
cancelled.
"""

import asyncio
import json
import site
import sys
from typing import Literal

from mcp import Client
from mcp.client.extension import ClientExtension, ResultClaim
from mcp.server import Server
from mcp_types import (
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    ListToolsResult,
    Request,
    RequestParams,
    Result,
    TextContent,
    Tool,
)
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

folder, tool = sys.argv[1:]
site.addsitedir(folder)  # last, so that the framework keeps its own versions

from tooltrail import Trail  # noqa: E402  # found in that folder

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
trail = Trail(spool="memory")
seen = {"requests": 0, "polls": 0, "cancelled": False}
TASKS = "io.modelcontextprotocol/tasks"


class TaskResult(Result):
    """What a server returns at once for a call that goes on as a task."""

    result_type: Literal["task"] = "task"
    task_id: str
    status: str
    result: CallToolResult | None = None


class GetTaskParams(RequestParams):
    task_id: str


class GetTask(Request[GetTaskParams, Literal["tasks/get"]]):
    method: Literal["tasks/get"] = "tasks/get"
    params: GetTaskParams


async def list_tools(ctx, params):
    names, schema = ("book", "research", "wait"), {"type": "object"}
    return ListToolsResult(tools=[Tool(name=name, input_schema=schema) for name in names])


async def call_tool(ctx, params):
    seen["requests"] += 1
    if params.name == "wait":
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen["cancelled"] = True
            raise
    if params.name == "research":
        return TaskResult(task_id="task-1", status="working")
    if not params.input_responses:
        form = ElicitRequestFormParams(
            message="Which seat?",
            requested_schema={"type": "object", "properties": {"seat": {"type": "string"}}},
        )
        return InputRequiredResult(
            input_requests={"seat": ElicitRequest(params=form)}, request_state="round-1"
        )
    assert params.request_state == "round-1"
    return CallToolResult(content=[TextContent(type="text", text="Booked.")])


async def get_task(ctx, params):
    assert params.task_id == "task-1"
    seen["polls"] += 1
    if seen["polls"] < 3:
        return TaskResult(task_id=params.task_id, status="working")
    done = CallToolResult(content=[TextContent(type="text", text="Tea.")])
    return TaskResult(task_id=params.task_id, status="completed", result=done)


class Tasks(ClientExtension):
    """Finishes a task by polling it."""

    identifier = TASKS

    def claims(self):
        return [ResultClaim(result_type="task", model=TaskResult, resolve=self.poll)]

    async def poll(self, task, context):
        while task.result is None:
            trail.current().report("working")
            params = GetTaskParams(task_id=task.task_id)
            task = await context.session.send_request(GetTask(params=params), TaskResult)
        return task.result


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


server = Server("flights", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
server.middleware.append(with_content)
server.add_request_handler("tasks/get", GetTaskParams, get_task)


async def answer(context, params):
    trail.current().report("waiting")
    return ElicitResult(action="accept", content={"seat": "9A"})


async def main():
    async with Client(server, elicitation_callback=answer, extensions=[Tasks()]) as client:

        @trail.tool(name=tool)
        async def call(**arguments):
            return await client.call_tool(tool, arguments)

        with trace.get_tracer("agent").start_as_current_span("invoke_agent traveller"):
            running = asyncio.ensure_future(call(to="London"))
            if tool == "wait":
                await asyncio.sleep(0.3)
                running.cancel()
            await asyncio.wait([running])
            if tool != "wait":
                seen["text"] = running.result().content[0].text
        await asyncio.sleep(0.2)


asyncio.run(main())
assert trail.close()
provider.shutdown()
sys.stdout.write(json.dumps(seen))
