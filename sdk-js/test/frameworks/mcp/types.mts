import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { Trail } from "tooltrail";
import { recordTransport } from "tooltrail/mcp";

const trail = new Trail();
const client = new Client({ name: "desk", version: "1" });
await client.connect(recordTransport(trail, new StdioClientTransport({ command: "node" })));
await client.connect(recordTransport(trail, new StreamableHTTPClientTransport(new URL("http://localhost"))));
await new McpServer({ name: "concierge", version: "1" }).connect(recordTransport(trail, new StdioServerTransport()));
