"""A client of a real MCP server, over stdio, whose calls and definitions our SDK records.

    mcp_recorded.py <site-packages of the SDK> <tool> <arguments as JSON> <command of the server …>

Prints the result as JSON, as the server sent it. `TOOLTRAIL_URL` and `TOOLTRAIL_API_KEY` say where
the calls go.
"""

import asyncio
import json
import os
import site
import sys

from mcp import Client, StdioServerParameters

folder, tool, arguments, command, *options = sys.argv[1:]
site.addsitedir(folder)  # last, so that the framework keeps its own versions

from tooltrail import Trail  # noqa: E402  # found in that folder


async def main() -> None:
    quiet = dict(os.environ) | {"OTEL_SDK_DISABLED": "true"}  # the server's spans are not the point
    server = StdioServerParameters(command=command, args=options, env=quiet)
    async with Client(server) as client:
        listed = await client.list_tools()
        assert trail.definitions(client.server_info, listed, client="mcp_recorded")
        assert not trail.definitions(
            client.server_info, await client.list_tools(), client="mcp_recorded"
        )
        tools = {each.name: each for each in listed.tools}

        @trail.tool(name=tool, output_schema=tools[tool].output_schema)
        async def call(**arguments):
            return await client.call_tool(tool, arguments)

        result = await call(**json.loads(arguments))
    shown = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    sys.stdout.write(json.dumps(shown))


trail = Trail(spool="memory")
asyncio.run(main())
assert trail.close()
