"""Claude Agent SDK with a scripted transport in the place of Claude Code.

It asks hooks, permissions and the in-process MCP server by the SDK's control protocol, in the order
in which Claude Code asks them. `claude_agent_sdk` answers as in production.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

sys.path.append(str(Path(__file__).parents[1]))

import stage
from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    PermissionResultAllow,
    PermissionResultDeny,
    Transport,
    create_sdk_mcp_server,
    tool,
)
from tooltrail.integrations.claude_agent_sdk import record_tools


class Scripted(Transport):
    """Runs `script` when a prompt arrives."""

    def __init__(self, script: Any) -> None:
        self._script = script
        self._messages: asyncio.Queue[Any] = asyncio.Queue()
        self._answers: dict[str, asyncio.Future[Any]] = {}
        self._numbers = count()
        self._hooks: dict[str, list[str]] = {}
        self._prompt_id = ""
        self.interrupted = asyncio.Event()

    async def connect(self) -> None: ...

    async def close(self) -> None: ...

    async def end_input(self) -> None: ...

    def is_ready(self) -> bool:
        return True

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        while (message := await self._messages.get()) is not None:
            yield message

    async def write(self, data: str) -> None:
        message = json.loads(data)
        if message["type"] == "control_response":
            answer = message["response"]
            self._answers.pop(answer["request_id"]).set_result(answer.get("response"))
        elif message["type"] == "user":
            self._prompt_id = str(uuid4())
            self._run = asyncio.create_task(self._play())
        else:
            request = message["request"]
            if request["subtype"] == "initialize":
                self._hooks = {
                    event: [each for one in listed for each in one["hookCallbackIds"]]
                    for event, listed in request["hooks"].items()
                }
            else:
                self.interrupted.set()
            response = {"subtype": "success", "request_id": message["request_id"], "response": {}}
            self._messages.put_nowait({"type": "control_response", "response": response})

    async def _play(self) -> None:
        await self.of_server(
            "initialize",
            protocolVersion="2025-06-18",
            capabilities={},
            clientInfo={"name": "claude-code", "version": "1"},
        )
        await self._ask(
            subtype="mcp_message",
            server_name="w",
            message={"jsonrpc": "2.0", "method": "notifications/initialized"},
        )
        await self._script(self)
        await self.hook("Stop", stop_hook_active=False)
        self._messages.put_nowait(
            {
                "type": "result",
                "subtype": "success",
                "duration_ms": 1,
                "duration_api_ms": 1,
                "is_error": False,
                "num_turns": 1,
                "session_id": "conv-1",
            }
        )

    async def _ask(self, **request: Any) -> Any:
        request_id = f"cli_{next(self._numbers)}"
        answer = self._answers[request_id] = asyncio.get_running_loop().create_future()
        self._messages.put_nowait(
            {"type": "control_request", "request_id": request_id, "request": request}
        )
        return await answer

    async def hook(self, event: str, **members: Any) -> None:
        about = {"session_id": "conv-1", "prompt_id": self._prompt_id, "hook_event_name": event}
        for callback_id in self._hooks[event]:
            answer = await self._ask(
                subtype="hook_callback",
                callback_id=callback_id,
                input={**about, **members},
                tool_use_id=members.get("tool_use_id"),
            )
            assert answer == {}, "an adapter decides nothing"

    async def of_server(self, method: str, **params: Any) -> Any:
        message = {"jsonrpc": "2.0", "id": next(self._numbers), "method": method, "params": params}
        answer = await self._ask(subtype="mcp_message", server_name="w", message=message)
        return answer["mcp_response"]["result"]

    async def call(
        self, name: str, n: int, /, agent: Any = None, asks: bool = False, **args: Any
    ) -> None:
        """Call a tool of the in-process server, as the main agent or a sub-agent."""
        about = {
            "tool_name": f"mcp__w__{name}",
            "tool_input": args,
            "tool_use_id": f"toolu_{n}",
            **(agent or {"agent_type": "concierge"}),
        }
        await self.hook("PreToolUse", **about)
        if asks:
            answer = await self._ask(
                subtype="can_use_tool",
                tool_name=about["tool_name"],
                input=args,
                tool_use_id=about["tool_use_id"],
            )
            if answer["behavior"] == "deny":
                return
        running = asyncio.create_task(self.of_server("tools/call", name=name, arguments=args))
        stopped = asyncio.create_task(self.interrupted.wait())
        await asyncio.wait({running, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            running.cancel()
            await self.hook("PostToolUseFailure", error="interrupted", is_interrupt=True, **about)
            return
        stopped.cancel()
        result = running.result()
        if result.get("isError"):
            text = result["content"][0]["text"]
            await self.hook("PostToolUseFailure", error=text, **about)
        else:
            await self.hook("PostToolUse", tool_response=result["content"], **about)

    async def helper(self) -> None:
        """The built-in tool that starts a sub-agent."""
        about = {
            "tool_name": "Agent",
            "tool_input": {"prompt": "look", "subagent_type": "inner"},
            "tool_use_id": "toolu_3",
            "agent_type": "concierge",
        }
        inner = {"agent_id": "a1", "agent_type": "inner"}
        await self.hook("PreToolUse", **about)
        await self.hook("SubagentStart", **inner)
        await self.call("lookup", 9, agent=inner, key="k")
        await self.hook("SubagentStop", stop_hook_active=False, **inner)
        await self.hook("PostToolUse", tool_response={"content": "value of k"}, **about)


def hook_output(value: Any) -> dict[str, Any]:
    text = value if isinstance(value, str) else json.dumps(value)
    return {"content": [{"type": "text", "text": text}]}


@tool("get_weather", "The weather of a city.", {"city": str})
async def get_weather(args: Any) -> Any:
    return hook_output(stage.get_weather(**args))


@tool("lookup", "Look it up.", {"key": str})
async def lookup(args: Any) -> Any:
    return hook_output(stage.lookup(**args))


@tool("report", "Write a report.", {"title": str, "rows": list})
async def report(args: Any) -> Any:
    return hook_output(stage.report(**args))


@tool("boom", "Fail.", {"n": int})
async def boom(args: Any) -> Any:
    return hook_output(stage.boom(**args))


@tool("slow", "Take long.", {})
async def slow(args: Any) -> Any:
    return hook_output(await stage.slow())


@tool("pay", "Send money.", {"amount": int})
async def pay(args: Any) -> Any:
    return hook_output("sent")


async def permit(name: str, args: Any, context: Any) -> Any:
    return PermissionResultAllow() if args["amount"] < 9 else PermissionResultDeny(message="no")


async def script(cli: Scripted) -> None:
    await asyncio.gather(
        cli.call("get_weather", 1, city="London"), cli.call("get_weather", 2, city="Paris")
    )
    await cli.helper()
    await cli.call("report", 4, title="T", rows=stage.ROWS)
    await cli.call("boom", 5, n=7)
    await cli.call("pay", 7, asks=True, amount=5)
    await cli.call("pay", 8, asks=True, amount=500)
    await cli.hook("PreToolUse", tool_name="Bash", tool_input={"command": "rm"}, tool_use_id="t")
    await cli.call("slow", 6)


trail = stage.make_trail()
tools = [get_weather, lookup, report, boom, slow, pay]
options = record_tools(
    ClaudeAgentOptions(
        model="script-1",
        mcp_servers={"w": create_sdk_mcp_server("w", tools=tools)},
        can_use_tool=permit,
    ),
    trail,
)


async def main() -> None:
    async with ClaudeSDKClient(options, transport=Scripted(script)) as client:
        await client.query("go")
        await stage.slow_runs.wait()
        await client.interrupt()
        async for _message in client.receive_response():
            pass


asyncio.run(main())
stage.finish(trail)
