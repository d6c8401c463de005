// A client and a server of the TypeScript SDK. `client`: the client's transport is recorded, over pipes in
// memory; `server`: the server's, over HTTP; `both`: that of both, over HTTP.
import { once } from "node:events";
import { createServer } from "node:http";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { Trail } from "tooltrail";
import { recordTransport } from "tooltrail/mcp";
import { z } from "zod";
import * as stage from "../stage.mjs";

const trail = new Trail();
const text = (value) => ({ content: [{ type: "text", text: typeof value === "string" ? value : JSON.stringify(value) }] });
const structured = (value) => ({ ...text(value), structuredContent: value });

function makeServer(library) {
  const server = new McpServer({ name: "concierge", version: "1.0.0" });
  const row = z.object({ n: z.number() });
  server.registerTool("get_weather", { inputSchema: { city: z.string() } }, async (args) => structured(await stage.getWeather(args)));
  server.registerTool("report", { inputSchema: { title: z.string(), rows: z.array(row) } }, async (args) => structured(await stage.report(args)));
  server.registerTool("boom", { inputSchema: { n: z.number() } }, async (args) => text(await stage.boom(args)));
  server.registerTool("slow", {}, async ({ signal }) => text(await stage.slow(signal)));
  server.registerTool("helper", { inputSchema: { task: z.string() } }, async () => library.callTool({ name: "lookup", arguments: { key: "k" } }));
  return server;
}

/** A client of a server in memory; its transport is made by `wrap`. */
async function connected(server, wrap) {
  const [near, far] = InMemoryTransport.createLinkedPair();
  const client = new Client({ name: "desk", version: "2.0.0" });
  await Promise.all([server.connect(far), client.connect(wrap(near))]);
  return client;
}

const recorded = (transport) => recordTransport(trail, transport);

async function script(client) {
  const call = (name, args = {}, options) => client.callTool({ name, arguments: args }, undefined, options);
  await Promise.all(["London", "Paris"].map((city) => call("get_weather", { city })));
  await call("helper", { task: "look" });
  await call("report", { title: "T", rows: stage.ROWS });
  await call("boom", { n: 7 });
  await stage.cancelled((signal) => call("slow", {}, { signal }));
  await client.listTools();
}

const shelf = new McpServer({ name: "library", version: "1.0.0" });
shelf.registerTool("lookup", { inputSchema: { key: z.string() } }, async (args) => text(await stage.lookup(args)));
const library = await connected(shelf, recorded);

if (process.argv[2] === "client") {
  const client = await connected(makeServer(library), recorded);
  await stage.record(trail, () => script(client));
  await client.close();
} else {
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: () => "session-1" });
  await makeServer(library).connect(recordTransport(trail, transport));
  const http = createServer((request, response) => void transport.handleRequest(request, response)).listen(0, "127.0.0.1");
  await once(http, "listening");
  const client = new Client({ name: "desk", version: "2.0.0" });
  const wire = new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${http.address().port}/mcp`));
  const isBoth = process.argv[2] === "both";
  await client.connect(isBoth ? recorded(wire) : wire);
  await stage.record(trail, () => script(client), isBoth ? {} : { within: {} });
  await client.close();
  http.closeAllConnections();
  http.close();
}
await library.close();
