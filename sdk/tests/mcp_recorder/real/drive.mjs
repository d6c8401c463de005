// The client of npm's SDK: node drive.mjs CALLS (URL | COMMAND …). A URL that ends in /sse: SSE of 2024.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [calls, target, ...args] = process.argv.slice(2);
const transport = () => {
  if (target.endsWith("/sse")) return new SSEClientTransport(new URL(target));
  if (target.startsWith("http:")) return new StreamableHTTPClientTransport(new URL(target));
  return new StdioClientTransport({ command: target, args, env: process.env });
};
const client = new Client({ name: "drive", version: "1" });
await client.connect(transport());
await client.listTools();
for (const [name, given] of JSON.parse(calls)) await client.callTool({ name, arguments: given });
await client.close();
