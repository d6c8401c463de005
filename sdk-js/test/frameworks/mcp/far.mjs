// A server over stdio, or over HTTP at MCP_PORT. Its tool `echo` makes a call of its own.
import { once } from "node:events";
import { createServer } from "node:http";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { Trail } from "tooltrail";
import { recordTransport } from "tooltrail/mcp";
import { z } from "zod";

const trail = new Trail();
const server = new McpServer({ name: "far", version: "1" });
server.registerTool("echo", { inputSchema: { value: z.any() } }, async ({ value }) => {
  const echoed = trail.record("inner", {}, () => ({ value }));
  return { content: [{ type: "text", text: JSON.stringify(echoed) }], structuredContent: echoed };
});
server.registerTool("boom", {}, async () => { throw new RangeError("boom"); });
const port = process.env.MCP_PORT;
if (!port) {
  await server.connect(recordTransport(trail, new StdioServerTransport()));
  await once(process.stdin, "end");
} else {
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: () => "session-1" });
  await server.connect(recordTransport(trail, transport));
  const http = createServer((request, response) => void transport.handleRequest(request, response));
  http.listen(Number(port), "127.0.0.1");
  await once(process, "SIGTERM");
  http.closeAllConnections();
  http.close();
}
await trail.close(20);
