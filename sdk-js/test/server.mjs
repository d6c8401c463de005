// A small Tooltrail server on loopback that fails on demand, for the tests of this package.
import { once } from "node:events";
import { createServer } from "node:http";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";

export const KEY = "tt_0198c0de-0000-7000-8000-000000000001_key1_secret_crc";

/** Starts a server and makes a folder for spools; both end with the test. */
export async function serving(t) {
  const server = {
    url: "", spoolDir: mkdtempSync(join(tmpdir(), "tooltrail-js-")),
    /** What arrived at /api/v1/events, answered or not. */
    requests: [],
    /** The stored events by id; gaps among them. */
    events: new Map(),
    tools: [],
    /** Asked for each request: `{ status, headers, document }`, or nothing for a good answer. */
    plan: () => undefined,
    get options() {
      return { url: server.url, apiKey: KEY, spoolDir: server.spoolDir };
    },
  };
  const http = createServer((request, response) => {
    const chunks = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => {
      const { status = 200, headers = {}, document = {} } = answer(server, request, Buffer.concat(chunks));
      response.writeHead(status, { "content-type": "application/json", "tooltrail-contract": "2", ...headers });
      response.end(JSON.stringify(document));
    });
  });
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  server.url = `http://127.0.0.1:${http.address().port}`;
  t.after(async () => {
    http.closeAllConnections();
    http.close();
    rmSync(server.spoolDir, { recursive: true, force: true });
  });
  return server;
}

function answer(server, request, body) {
  if (request.url === "/api/v1/tools") {
    const { tools } = JSON.parse(body);
    server.tools.push(...tools);
    return { document: { unknown: tools.filter(({ name }) => name === undefined).map(({ digest }) => digest) } };
  }
  const text = request.headers["content-encoding"] === "gzip" ? gunzipSync(body).toString() : body.toString();
  const lines = text.split("\n").filter((line) => line !== "");
  const arrived = { method: request.method, headers: request.headers, lines };
  server.requests.push(arrived);
  const planned = server.plan(arrived);
  if (planned) return planned;
  for (const line of lines) {
    const event = JSON.parse(line);
    server.events.set(event.event_id, event);
  }
  const size = server.events.size;
  return { document: { accepted: lines.length, duplicates: 0, rejected: [], ledger: { first_index: size - lines.length, size } } };
}

/** The stored events of one type. */
export const ofType = (server, type) => [...server.events.values()].filter((event) => event.type === type);

/** Waits until a condition is true; fails after 15 seconds. */
export async function until(fulfilled) {
  for (let waited = 0; waited < 15_000; waited += 20) {
    if (fulfilled()) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error("it did not happen in time");
}
