// A client of the server that the test names: by its address in MCP_URL, or by its command in MCP_COMMAND.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { Trail } from "tooltrail";
import { recordTransport } from "tooltrail/mcp";

const { MCP_URL: url, MCP_COMMAND, MCP_ENVIRONMENT, MCP_VALUES } = process.env;
const trail = new Trail();
const [command, ...args] = JSON.parse(MCP_COMMAND);
const transport = url
  ? new StreamableHTTPClientTransport(new URL(url))
  : new StdioClientTransport({ command, args, env: JSON.parse(MCP_ENVIRONMENT) });
const client = new Client({ name: "near", version: "1" });
await client.connect(recordTransport(trail, transport));
await trail.trace({ traceId: "trace-1", agent: "concierge" }, async () => {
  for (const value of JSON.parse(MCP_VALUES)) await client.callTool({ name: "echo", arguments: { value } });
  const failed = await client.callTool({ name: "boom", arguments: {} });
  if (failed.isError !== true) throw new Error("it did not fail");
});
await client.close();
if (!(await trail.close(20))) throw new Error("not all was sent");
