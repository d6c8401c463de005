// The client of npm's SDK: node drive.mjs CALLS COMMAND …
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [calls, command, ...args] = process.argv.slice(2);
const client = new Client({ name: "drive", version: "1" });
await client.connect(new StdioClientTransport({ command, args, env: process.env }));
await client.listTools();
for (const [name, given] of JSON.parse(calls)) await client.callTool({ name, arguments: given });
await client.close();
