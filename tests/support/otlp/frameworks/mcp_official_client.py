"""The official MCP client against a server; run in an environment of its own.

Writes what it found as JSON. `every-tool`: each tool is called with the
arguments given on standard input; the library validates each answer by the tool's schema.
`detective`: finds the failing tool and the version that broke it, by answers alone.
"""

import asyncio
import json
import sys

from mcp import Client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

task, url, key, mode = sys.argv[1:]


def connected():
    http = create_mcp_http_client({"Authorization": f"Bearer {key}"})
    return Client(streamable_http_client(url, http_client=http), mode=mode)


async def every_tool(client):
    arguments = json.load(sys.stdin)
    tools = (await client.list_tools()).tools
    [resource] = (await client.list_resources()).resources
    grammar = (await client.read_resource(str(resource.uri))).contents[0].text
    answers = {}
    for tool in tools:
        assert tool.output_schema, tool.name
        result = await client.call_tool(tool.name, arguments.get(tool.name, {}))
        answers[tool.name] = {
            "is_error": result.is_error,
            "members": sorted(result.structured_content or {}),
        }
    return {"version": client.protocol_version, "grammar": len(grammar), "answers": answers}


async def detective(client):
    async def ask(name, **arguments):
        result = await client.call_tool(name, arguments)
        assert not result.is_error, result.content
        return result.structured_content["untrusted"]

    # Which kind of violation is new, and since which version?
    kinds = (await ask("violations", side="results"))["items"]
    worst = max(kinds, key=lambda kind: kind["share"])
    tool, version = worst["tool_name"], worst["new_since"]
    # Did that version change its contract so that consumers break?
    changes = (await ask("what_changed", tool=tool))["items"]
    published = [one for one in changes if one["kind"] == "version" and one.get("before_version")]
    [breaking] = [one for one in published if one.get("consumers") == "breaking"]
    # One call of it, its trace, and the proof that it is recorded.
    found = await ask("search_calls", q=f"tool:{tool} version:{version} violation:*", limit=1)
    call = found["items"][0]["invocation_id"]
    detail = await ask("get_call", invocation_id=call)
    trace = await ask("get_trace", trace_id=detail["trace_id"])
    assert any(line.startswith(call) for line in trace["items"])
    proof = await ask("prove_call", invocation_id=call)
    return {
        "tool": tool,
        "version": version,
        "published": breaking["version"],
        "differences": [[one["path"], one["verdict"]] for one in breaking["changes"]],
        "path": detail["violations"][0]["path"],
        "entry": proof["index"],
    }


async def main():
    async with connected() as client:
        answer = await (every_tool if task == "every-tool" else detective)(client)
    sys.stdout.write(json.dumps(answer))


asyncio.run(main())
