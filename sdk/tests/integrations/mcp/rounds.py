"""A server of MCP's Python SDK whose calls ask for input, are tasks, or fail as tasks.

The argument says who is recorded: `client`, `server` or `both`.
"""

import asyncio
import json
import sys
from typing import Any, Literal

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
from tooltrail.integrations.mcp import TooltrailMiddleware, record_client
from tooltrail.testing import MemoryTrail

DONE = CallToolResult(content=[TextContent(type="text", text="done")])
STATUSES = {"research": ["working", "input_required", "completed"], "spoil": ["failed"]}
polls = {"research": 0, "spoil": 0}


class TaskResult(Result):
    result_type: Literal["task"] = "task"
    task_id: str
    status: str
    status_message: str | None = None
    result: CallToolResult | None = None


class GetTaskParams(RequestParams):
    task_id: str


class GetTask(Request[GetTaskParams, Literal["tasks/get"]]):
    method: Literal["tasks/get"] = "tasks/get"
    params: GetTaskParams


class Tasks(ClientExtension):
    identifier = "io.modelcontextprotocol/tasks"

    def claims(self) -> Any:
        return [ResultClaim(result_type="task", model=TaskResult, resolve=self.poll)]

    async def poll(self, task: Any, context: Any) -> Any:
        while task.status not in ("completed", "failed"):
            params = GetTaskParams(task_id=task.task_id)
            task = await context.session.send_request(GetTask(params=params), TaskResult)
        return task.result or DONE


async def list_tools(ctx: Any, params: Any) -> Any:
    names = ("book", "twice", "research", "spoil", "abandon")
    return ListToolsResult(
        tools=[Tool(name=name, input_schema={"type": "object"}) for name in names]
    )


async def call_tool(ctx: Any, params: Any) -> Any:
    if params.name in STATUSES:
        return TaskResult(task_id=params.name, status="working")
    if params.name != "abandon" and params.input_responses:
        if params.name == "twice" and params.request_state == "s1":
            return asks("s2")
        return DONE
    return asks("s1")


def asks(state: str) -> Any:
    schema = {"type": "object", "properties": {"seat": {"type": "string"}}}
    form = ElicitRequestFormParams(message="Seat?", requested_schema=schema)
    return InputRequiredResult(
        input_requests={"seat": ElicitRequest(params=form)}, request_state=state
    )


async def get_task(ctx: Any, params: Any) -> Any:
    tool = params.task_id
    status = STATUSES[tool][polls[tool]]
    polls[tool] += 1
    result = DONE if status == "completed" else None
    return TaskResult(task_id=tool, status=status, status_message="no tea", result=result)


async def answer(context: Any, params: Any) -> Any:
    return ElicitResult(action="accept", content={})


async def main() -> None:
    async with Client(server, elicitation_callback=answer, extensions=[Tasks()]) as client:
        if recorded != "server":
            record_client(trail, client)
        for tool in ("book", "twice", "research", "spoil"):
            await client.call_tool(tool, {"n": 1})
        for _ in range(2):
            await client.session.call_tool("abandon", {}, allow_input_required=True)


recorded = sys.argv[1]
trail = MemoryTrail(clock=None, ids=None)
server: Any = Server("flights", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
if recorded != "client":
    server.middleware.append(TooltrailMiddleware(trail))
server.add_request_handler("tasks/get", GetTaskParams, get_task)
asyncio.run(main())
sys.stdout.write(json.dumps(trail.events))
