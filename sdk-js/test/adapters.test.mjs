// What adapters do where a framework does not behave: tasks, closed connections, failures in the middle of
// a run. With the real frameworks they are tested in tests/sdk_js/test_frameworks.py.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { canonicalStringify } from "../dist/canonical.js";
import { SpoolFullError, Trail } from "../dist/index.mjs";
import { recordTools } from "../dist/adapters/ai.mjs";
import { TooltrailHandler } from "../dist/adapters/langchain.mjs";
import { recordTools as recordMastraTools } from "../dist/adapters/mastra.mjs";
import { recordTransport } from "../dist/adapters/mcp.mjs";
import { recordTool } from "../dist/adapters/openaiAgents.mjs";
import { KEY, ofType, serving } from "./server.mjs";

async function recorded(t, work, options = {}) {
  const server = await serving(t);
  const trail = new Trail({ ...server.options, ...options });
  await work(trail, server);
  assert.equal(await trail.close(10), true);
  return { starts: ofType(server, "toolExecutionStart"), ends: ofType(server, "toolExecutionEnd") };
}

/** A transport that keeps what is sent. Its fields are private, as those of some SDKs are. */
class Wire {
  #sent = [];
  sessionId = "s";
  fails = false;
  async start() {}
  async close() { this.onclose?.(); }
  async send(message) {
    if (this.fails) throw new Error("the pipe is broken");
    this.#sent.push(message);
  }
  get sent() { return this.#sent; }
}

function side(trail) {
  const wire = new Wire();
  const transport = recordTransport(trail, wire);
  const got = [];
  transport.onmessage = (message) => { got.push(message); };
  transport.onclose = () => { got.push("closed"); };
  return { wire, transport, got, arrives: (message) => { wire.onmessage(message); } };
}

const call = (id, name = "t", more = {}) => ({ jsonrpc: "2.0", id, method: "tools/call", params: { name, arguments: { id }, ...more } });
const answer = (id, result) => ({ jsonrpc: "2.0", id, result });
const text = (value) => ({ content: [{ type: "text", text: value }] });

test("a client's calls end with their answers, with an error, a cancellation, a time-out or the connection", async (t) => {
  const { starts, ends } = await recorded(t, async (trail) => {
    const { wire, transport, got, arrives } = side(trail);
    await transport.start();
    await transport.send({ jsonrpc: "2.0", id: 0, method: "initialize", params: { protocolVersion: "2025-11-25", clientInfo: { name: "desk", version: "1" } } });
    arrives(answer(0, { protocolVersion: "2025-06-18", serverInfo: { name: "shop", version: "2" }, capabilities: {} }));
    for (const id of [1, 2, 3, 4, 5, 6]) await transport.send(call(id));
    arrives(answer(1, text("ok")));
    arrives(answer(2, { ...text("no such city"), isError: true }));
    arrives({ jsonrpc: "2.0", id: 3, error: { code: -32602, message: "unknown tool" } });
    const cancel = (requestId, reason) => transport.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId, reason } });
    await cancel(4, "AbortError: This operation was aborted");
    await cancel(5, "McpError: MCP error -32001: Request timed out");
    arrives(answer(4, text("too late")));
    wire.fails = true;
    await assert.rejects(transport.send(call(7)), /the pipe is broken/);
    await transport.close();
    assert.deepEqual([got.length, got.at(-1), transport.sessionId, wire.sent.length], [6, "closed", "s", 9]);
  });
  assert.equal(starts.length, 7);
  const byId = new Map(starts.map(({ invocation_id, args }) => [args.id, ends.find((end) => end.invocation_id === invocation_id)]));
  assert.equal(ends.length, 7);
  assert.deepEqual([byId.get(1).is_error, byId.get(1).output_type, byId.get(1).output.data], [false, "CallToolResult", text("ok")]);
  assert.deepEqual(byId.get(1).mcp, { client: { name: "desk", version: "1" }, server: { name: "shop", version: "2" }, protocol_version: "2025-06-18" });
  const errors = [2, 3, 4, 5, 6, 7].map((id) => [byId.get(id).call_state, byId.get(id).output.error.type, byId.get(id).output.error.message]);
  assert.deepEqual(errors, [
    [undefined, "tool_error", "no such city"],
    [undefined, "FATAL", "unknown tool"],
    ["cancelled", "RETRYABLE", "AbortError: This operation was aborted"],
    [undefined, "TIMEOUT", "McpError: MCP error -32001: Request timed out"],
    [undefined, "RETRYABLE", "the connection was closed"],
    [undefined, "FATAL", "the pipe is broken"],
  ]);
});

test("a server's calls are nested in nothing, and what runs in them is nested in them", async (t) => {
  const { starts, ends } = await recorded(t, async (trail) => {
    const wire = new Wire();
    const transport = recordTransport(trail, wire);
    transport.onmessage = ({ id }) => {
      trail.record("inner", {}, () => 1);
      if (id === 1) void transport.send(answer(id, text("ok")));
    };
    for (const id of [1, 2]) wire.onmessage(call(id));
    wire.onmessage({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 2 } });
  });
  const outer = starts.filter(({ tool_name }) => tool_name === "t");
  const inner = starts.filter(({ tool_name }) => tool_name === "inner");
  assert.deepEqual(inner.map((each) => each.parent_invocation_id), [...outer.map((each) => each.invocation_id), undefined]);
  assert.equal(ends.find(({ tool_name, call_state }) => tool_name === "t" && call_state === "cancelled").invocation_id, outer[1].invocation_id);
});

/** A client's and a server's wire, both recorded; the server answers each call by a call of `inner`. */
function bothSides(clients, servers) {
  const [near, far] = [new Wire(), new Wire()];
  const [client, server] = [recordTransport(clients, near), recordTransport(servers, far)];
  near.send = async (message) => { far.onmessage(structuredClone(message)); };
  far.send = async (message) => { near.onmessage(structuredClone(message)); };
  client.onmessage = () => {};
  server.onmessage = ({ id }) => {
    servers.record("inner", {}, () => 1);
    void server.send(answer(id, text("ok")));
  };
  return { client, far };
}

test("a call that client and server both record is one call, if they have one key", async (t) => {
  const server = await serving(t);
  const [one, other, foreign] = [server.options, server.options, { ...server.options, apiKey: KEY.replace("secret", "other") }].map((options) => new Trail(options));
  await one.trace({ traceId: "t-1" }, () => bothSides(one, other).client.send(call(1, "shared", { _meta: { progressToken: 7 } })));
  await bothSides(one, foreign).client.send(call(1, "apart"));
  await bothSides(new Trail({ url: "", apiKey: "" }), other).client.send(call(1, "unrecorded"));
  for (const trail of [one, other, foreign]) assert.equal(await trail.close(10), true);
  const starts = ofType(server, "toolExecutionStart");
  const named = (name) => starts.filter(({ tool_name }) => tool_name === name);
  assert.deepEqual(["shared", "apart", "unrecorded"].map((name) => named(name).length), [1, 2, 1]);
  assert.deepEqual(named("inner").filter(({ trace_id }) => trace_id === "t-1").map((inner) => inner.parent_invocation_id), [named("shared")[0].invocation_id]);
  const ends = ofType(server, "toolExecutionEnd");
  assert.deepEqual(starts.map(({ invocation_id: id }) => ends.filter((end) => end.invocation_id === id).length), starts.map(() => 1));
});

test("a server believes no claim that is used again, altered or old", async (t) => {
  const { starts } = await recorded(t, async (trail) => {
    const { client, far } = bothSides(trail, trail);
    const sent = [];
    const { onmessage } = far;
    far.onmessage = (message) => { sent.push(message); onmessage(message); };
    await client.send(call(1, "t", {}));
    const [first] = sent;
    const claim = first.params._meta["tooltrail/call"];
    const again = (changes, altered = {}) => ({ ...first, params: { ...first.params, ...changes, _meta: { "tooltrail/call": { ...claim, ...altered } } } });
    far.onmessage(again({}));
    far.onmessage(again({ name: "other" }));
    far.onmessage(again({ arguments: { id: 2 } }));
    const old = `${(Date.now() - 400_000).toString(16).padStart(12, "0").replace(/^.{8}/, "$&-")}${claim.invocation_id.slice(13)}`;
    for (const altered of [{ proof: "00" }, { proof: 7 }, { trace_id: "x" }, { invocation_id: old }, { invocation_id: "" }, null]) far.onmessage(again({}, altered ?? { proof: null }));
    far.onmessage({ ...first, params: { ...first.params, _meta: { "tooltrail/call": null } } });
    // Made with the key, and still not what a client of ours sends; the last one is.
    const made = (id, traceId, more = {}) => {
      const said = { args: { id: 1 }, id, tool: "t", trace: traceId, ...(more.requestState && { state: more.requestState }) };
      const proof = createHmac("sha256", trail.settings.apiKey).update(canonicalStringify(said)).digest("hex");
      return again(more, { invocation_id: id, trace_id: traceId, proof });
    };
    const id = claim.invocation_id;
    for (const [made_id, trace] of [[id, "x".repeat(129)], [id, ""], [id.toUpperCase(), "x"], [`${id}x`, "x"]]) far.onmessage(made(made_id, trace));
    far.onmessage(made(id, "x", { requestState: "s1" }));
  });
  assert.equal(starts.filter(({ tool_name }) => tool_name !== "inner").length, 1 + 3 + 6 + 1 + 4);
});

test("a server's call is in the trace, and names the span, of the request", async (t) => {
  const traceparent = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;
  const { starts } = await recorded(t, (trail) => {
    const { arrives, transport } = side(trail);
    transport.onmessage = () => { trail.record("inner", {}, () => 1); };
    arrives(call(1, "t", { _meta: { traceparent } }));
    arrives(call(2, "t", { _meta: { traceparent: "00-0-0-01" } }));
  });
  assert.deepEqual([starts[0].traceparent, starts[0].trace_id], [traceparent, "a".repeat(32)]);
  assert.deepEqual([starts[1].traceparent, starts[1].parent_invocation_id], [undefined, starts[0].invocation_id]);
  assert.deepEqual([starts[2].traceparent, starts[2].trace_id === starts[0].trace_id], [undefined, false]);
});

test("a call that returns a task is open until the task's result is asked for", async (t) => {
  const { ends } = await recorded(t, async (trail) => {
    const { transport, arrives } = side(trail);
    const task = (taskId, status, more = {}) => ({ taskId, status, ...more });
    for (const [id, taskId] of [[1, "a"], [2, "b"], [3, "c"]]) {
      await transport.send(call(id, taskId));
      arrives(answer(id, { task: task(taskId, "working") }));
    }
    let id = 10;
    const ask = async (method, taskId, result) => {
      await transport.send({ jsonrpc: "2.0", id: ++id, method, params: { taskId } });
      arrives(answer(id, result));
    };
    await ask("tasks/get", "a", task("a", "working"));
    await ask("tasks/get", "a", task("a", "input_required"));
    await ask("tasks/get", "a", task("a", "completed"));
    await ask("tasks/result", "a", text("booked"));
    await ask("tasks/get", "b", task("b", "failed", { statusMessage: "no seats" }));
    await ask("tasks/cancel", "c", task("c", "cancelled"));
    await ask("tasks/get", "unknown", task("unknown", "completed"));
  });
  ends.sort((a, b) => a.producer_seq - b.producer_seq); // interim events are sent apart
  const of = (tool) => ends.filter(({ tool_name }) => tool_name === tool).map((end) => end.call_state ?? (end.is_error ? "failed" : "ok"));
  assert.deepEqual([of("a"), of("b"), of("c")], [["working", "waiting", "ok"], ["working", "failed"], ["working", "cancelled"]]);
  assert.equal(ends.find(({ is_error }) => is_error).output.error.message, "no seats");
});

test("a tool that cannot be recorded does not run, and its caller is told", async (t) => {
  const server = await serving(t);
  server.plan = () => ({ status: 503 });
  const trail = new Trail({ ...server.options, whenFull: "raise", maxBytes: 1500 });
  let runs = 0;
  const tools = recordTools(trail, { t: { execute: () => { runs += 1; } } });
  assert.throws(() => { for (let n = 0; n < 50; n++) tools.t.execute({}); }, SpoolFullError);
  const before = runs;
  const { wire, transport, got, arrives } = side(trail);
  await assert.rejects(transport.send(call(1)), SpoolFullError);
  arrives(call(2));
  assert.deepEqual([runs, got.length, wire.sent.length, wire.sent[0].error.code], [before, 0, 1, -32603]);
  const handler = new TooltrailHandler(trail);
  assert.equal(handler.raiseError, true);
  assert.throws(() => { handler.handleToolStart({}, "{}", "run-1"); }, SpoolFullError);
  server.plan = () => undefined;
  await trail.close(10);
});

test("tools keep their class, their other members and their results", async (t) => {
  class Tool {
    #secret = 1;
    id = "add";
    constructor() { this.execute = async ({ a }) => a + this.#secret; }
    describe() { return "adds"; }
  }
  const { starts, ends } = await recorded(t, async (trail) => {
    const tools = { add: new Tool(), remote: { id: "remote" }, broken: { id: "broken", execute: async () => ({ error: true, message: "a is missing", validationErrors: {} }) } };
    const copies = recordMastraTools(trail, tools);
    assert.ok(copies.add instanceof Tool);
    assert.equal(copies.add.describe(), "adds");
    assert.equal(copies.remote, tools.remote);
    assert.notEqual(copies.add.execute, tools.add.execute);
    assert.equal(await copies.add.execute({ a: 1 }, { agent: { agentId: "x", threadId: "y", toolCallId: "z" } }), 2);
    assert.equal((await copies.broken.execute({})).message, "a is missing");
    const items = { async *[Symbol.asyncIterator]() { yield 1; yield 2; } }; // no generator
    const streamed = recordTools(trail, { s: { execute: () => items } });
    const seen = [];
    for await (const item of streamed.s.execute({})) seen.push(item);
    assert.deepEqual(seen, [1, 2]);
    const made = recordTool(trail, { name: "made", invoke: async (_context, input) => `An error occurred while running the tool. ${input}` });
    assert.match(await made.invoke({}, "not json"), /not json$/);
    const hosted = { type: "hosted_tool", name: "web_search" };
    assert.equal(recordTool(trail, hosted), hosted);
  });
  assert.deepEqual([starts[0].context, starts[0].run_id, starts[0].tool_call_id], [{ agent: "x" }, "y", "z"]);
  assert.deepEqual(ends.map((end) => [end.tool_name, end.is_error]), [["add", false], ["broken", true], ["s", false], ["made", true]]);
  assert.deepEqual(ends[2].output.data, { items: 2, first: 1, last: 2 });
  assert.deepEqual(starts[3].args, { input: "not json" });
});

test("a handler survives runs that it does not know, and strange messages", async (t) => {
  const { starts, ends } = await recorded(t, (trail) => {
    const handler = new TooltrailHandler(trail);
    handler.handleToolEnd("x", "unknown");
    handler.handleToolError(new Error("x"), "unknown");
    handler.handleLLMEnd({}, "llm", "unknown");
    handler.handleChainStart({}, {}, "chain");
    handler.handleLLMEnd({ generations: null }, "llm", "chain"); // a mistake of ours would be logged
    handler.handleToolStart(undefined, "plain text", "run", "chain");
    handler.handleToolEnd({ tool_call_id: "c", status: "error", content: "no" }, "run");
    handler.handleChainEnd({}, "chain");
    handler.handleToolStart({ id: ["langchain", "tools", "Named"] }, "{}", "run-2");
    handler.handleToolEnd({ tool_call_id: "c", content: '{"a": 1}' }, "run-2");
    assert.equal(handler.copy(), handler);
  });
  assert.deepEqual(starts.map(({ tool_name, args, trace_id }) => [tool_name, args, trace_id]), [["tool", { input: "plain text" }, "chain"], ["Named", {}, "run2"]]);
  assert.deepEqual([ends[0].output.error.message, ends[1].output.data], ["no", { a: 1 }]);
});
