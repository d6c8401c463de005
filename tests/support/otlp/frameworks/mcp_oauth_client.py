"""The official MCP client signs a person in by OAuth; run in an environment of its own.

Prints the address that a browser would open, and reads the one that the browser is sent back to.
Then prints what it found as JSON: the tools, and the answer of one of them.
"""

import asyncio
import json
import sys
from urllib.parse import parse_qs, urlsplit

from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.oauth2 import AuthorizationCodeResult
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp.shared.auth import OAuthClientMetadata

url, call_id = sys.argv[1:]


class Memory:
    """Keeps tokens and client for as long as the process runs."""

    def __init__(self):
        self.tokens = self.client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client_info):
        self.client = client_info


async def leave(address):
    sys.stdout.write(f"{address}\n")
    sys.stdout.flush()


async def come_back():
    address = await asyncio.to_thread(sys.stdin.readline)
    given = {name: values[0] for name, values in parse_qs(urlsplit(address.strip()).query).items()}
    return AuthorizationCodeResult(code=given["code"], state=given["state"], iss=given.get("iss"))


async def main():
    memory = Memory()
    metadata = OAuthClientMetadata(
        client_name="a coding agent",
        redirect_uris=["http://127.0.0.1:33418/callback"],
        grant_types=["authorization_code"],
        token_endpoint_auth_method="none",
    )
    auth = OAuthClientProvider(url, metadata, memory, leave, come_back)
    http = create_mcp_http_client(auth=auth)
    async with Client(streamable_http_client(url, http_client=http)) as client:
        tools = (await client.list_tools()).tools
        answer = await client.call_tool("get_call", {"invocation_id": call_id})
    found = {
        "tools": [tool.name for tool in tools],
        "is_error": answer.is_error,
        "answer": answer.structured_content,
        "scope": memory.tokens.scope,
        "access_token": memory.tokens.access_token,
    }
    sys.stdout.write(f"{json.dumps(found)}\n")


asyncio.run(main())
