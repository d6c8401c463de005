// What a trail records of calls, and that it never disturbs them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { SpoolFullError, Trail } from "../dist/index.mjs";
import { ofType, serving } from "./server.mjs";

async function recorded(t, work, options = {}) {
  const server = await serving(t);
  const trail = new Trail({ ...server.options, ...options });
  await work(trail, server);
  assert.equal(await trail.close(10), true);
  return { starts: ofType(server, "toolExecutionStart"), ends: ofType(server, "toolExecutionEnd"), server, trail };
}

test("a call is a start and an end", async (t) => {
  const { starts, ends } = await recorded(t, async (trail) => {
    const add = trail.tool(async function add({ a, b }) {
      return { sum: a + b };
    });
    assert.equal(add.name, "add");
    assert.equal(add.length, 1);
    assert.deepEqual(await add({ a: 1, b: 2 }, { signal: "of the framework" }), { sum: 3 });
  });
  const [start, end] = [starts[0], ends[0]];
  assert.deepEqual(start.args, { a: 1, b: 2 });
  assert.equal(end.invocation_id, start.invocation_id);
  assert.equal(end.call_id, start.call_id);
  assert.equal(end.is_error, false);
  assert.deepEqual(end.output.data, { sum: 3 });
  assert.ok(Date.parse(end.ended_at) >= Date.parse(start.started_at));
  assert.ok(Math.abs(Date.parse(start.started_at) - Date.now()) < 60_000);
  assert.deepEqual([start.producer_seq, end.producer_seq], [0, 1]);
});

test("an event is in a file before the tool goes on", async (t) => {
  const { readdirSync, readFileSync } = await import("node:fs");
  await recorded(t, (trail, server) => {
    const onFile = () =>
      readdirSync(server.spoolDir, { recursive: true }).filter((name) => name.endsWith(".open"))
        .map((name) => readFileSync(`${server.spoolDir}/${name}`, "utf8")).join("").split("\n").length - 1;
    const tool = trail.tool(function look() {
      return onFile();
    });
    assert.equal(tool(), 1);
    assert.equal(onFile(), 2);
  });
});

test("results, synchronous or not, and what is thrown reach the caller as they are", async (t) => {
  const mistake = new RangeError("no");
  const { ends } = await recorded(t, async (trail) => {
    assert.equal(trail.tool((n) => n * 2, { name: "twice" })(4), 8);
    assert.throws(() => trail.tool(() => { throw mistake; }, { name: "bad" })(), (error) => error === mistake);
    await assert.rejects(trail.tool(async () => { throw mistake; }, { name: "worse" })(), (error) => error === mistake);
    assert.throws(() => trail.tool(() => { throw "text"; }, { name: "text" })(), (error) => error === "text");
    assert.throws(() => trail.tool(() => { throw undefined; }, { name: "nothing" })(), (error) => error === undefined);
  });
  assert.deepEqual(ends.map((end) => end.is_error), [false, true, true, true, true]);
  assert.deepEqual(ends[1].output.error, { type: "FATAL", message: "no", cause: "RangeError" });
  assert.equal(ends[3].output.error.message, "text");
});

test("failures are classified", async (t) => {
  const thrown = [
    [Object.assign(new Error("x"), { status: 429, headers: new Headers({ "retry-after": "3" }) }), "RATE_LIMIT"],
    [Object.assign(new Error("x"), { response: { status: 503 } }), "UPSTREAM"],
    [Object.assign(new Error("x"), { statusCode: 404 }), "FATAL"],
    [new DOMException("x", "TimeoutError"), "TIMEOUT"],
    [new DOMException("x", "AbortError"), "RETRYABLE"],
    [Object.assign(new Error("x"), { code: "ETIMEDOUT" }), "TIMEOUT"],
    [new TypeError("fetch failed", { cause: Object.assign(new Error("y"), { code: "ECONNREFUSED" }) }), "RETRYABLE"],
    [new SyntaxError("x"), "VALIDATION"],
    [Object.assign(new Error("x"), { name: "ZodError" }), "VALIDATION"],
    [Object.assign(new Error("a", { cause: new SyntaxError("b") }), { code: "E_TOOL_DOWNSTREAM_ERROR", status: 500 }), "VALIDATION"],
  ];
  const { ends } = await recorded(t, (trail) => {
    for (const [error] of thrown) {
      assert.throws(() => trail.record("t", {}, () => { throw error; }), (caught) => caught === error);
    }
  });
  assert.deepEqual(ends.map((end) => end.output.error.type), thrown.map(([, type]) => type));
  assert.equal(ends[0].output.error.retry_after_ms, 3000);
  assert.deepEqual([ends[4].call_state, ends[4].output.error.code], ["cancelled", "CANCELLED"]);
  assert.equal(ends[6].output.error.message, "y");
});

test("calls made inside a call are nested in it, also concurrently", async (t) => {
  const pause = () => new Promise((resolve) => setTimeout(resolve, 5));
  const { starts } = await recorded(t, async (trail) => {
    const inner = trail.tool(async (args) => { await pause(); return args; }, { name: "inner" });
    const outer = trail.tool(async ({ n }) => { await pause(); return Promise.all([inner({ n }), inner({ n })]); }, { name: "outer" });
    await trail.trace({ traceId: "t-1", agent: "concierge", runId: "r-1", toolCallId: "toolu_1" }, async (id) => {
      assert.equal(id, "t-1");
      await Promise.all([outer({ n: 1 }), outer({ n: 2 })]);
    });
    await outer({ n: 3 });
  });
  for (const inside of starts.filter((start) => start.tool_name === "inner")) {
    const around = starts.find((start) => start.invocation_id === inside.parent_invocation_id);
    assert.deepEqual([around.tool_name, around.args], ["outer", inside.args]);
    assert.equal(around.trace_id, inside.trace_id);
    assert.equal(inside.tool_call_id, undefined, "an id of one call is not inherited");
  }
  const traced = starts.filter((start) => start.trace_id === "t-1");
  assert.equal(traced.length, 6);
  assert.deepEqual(traced[0].context, { agent: "concierge" });
  assert.equal(traced[0].run_id, "r-1");
  assert.equal(traced[0].tool_call_id, "toolu_1");
  assert.match(starts.find((start) => start.args.n === 3).trace_id, /^[0-9a-f]{32}$/);
});

test("the tool itself adds to its call", async (t) => {
  const { ends } = await recorded(t, (trail) => {
    trail.record("t", {}, (call) => {
      assert.equal(trail.current(), call);
      trail.current().tokenUsage = { prompt: 1, completion: 2 };
      call.cacheHit = false;
    });
    trail.current().tokenUsage = { lost: 1 };
    trail.record("e", {}, () => ({ status: "error", error: { type: "TIMEOUT", message: "late" }, meta: { took_ms: 5 } }));
  });
  assert.deepEqual(ends[0].output.meta.token_usage, { prompt: 1, completion: 2 });
  assert.equal(ends[0].output.meta.cache_hit, false);
  assert.equal(ends[1].output.status, "error");
  assert.deepEqual([ends[1].output.error.type, ends[1].output.meta.took_ms], ["TIMEOUT", 5]);
});

test("secrets are removed before anything is on file, and only then is it cut", async (t) => {
  const { starts, ends, server } = await recorded(t, (trail) => {
    trail.record("t", { apiKey: "hush1", url: "https://ada:hush2@host/" }, () => ({ token: "hush3" }));
    assert.throws(() => trail.record("t", {}, () => { throw new Error("password=hush4"); }));
    trail.record("t", { text: `${"x".repeat(400_000)} password=hush5` }, () => null);
    trail.record("t", {}, () => "x".repeat(400_000));
  });
  assert.equal([...server.requests.flatMap(({ lines }) => lines)].join("").includes("hush"), false);
  assert.deepEqual(starts[0].removed, [{ path: "$.args.apiKey", reason: "name" }, { path: "$.args.url", reason: "name" }]);
  assert.equal(ends[1].output.error.message, "password=[redacted]");
  assert.match(starts[2].removed[1].reason, /^too long: \d+ bytes$/);
  assert.equal(ends[3].output.data.length, 4096);
});

test("values that are no JSON are recorded as well as possible, and untouched", async (t) => {
  const cycle = { a: 1 };
  cycle.cycle = cycle;
  function* numbers() { yield 1; }
  const items = numbers();
  const hostile = { get x() { throw new Error("trap"); } };
  const proxy = new Proxy({}, { ownKeys() { throw new Error("trap"); } });
  const { starts, ends } = await recorded(t, (trail) => {
    trail.record("t", { n: 10n, big: 2n ** 70n, d: new Date(0), m: new Map([["k", 1]]), s: new Set([1]), f: () => 1, u: undefined }, () => undefined);
    trail.record("t", { b: Buffer.from("hi"), e: new Error("x"), nan: NaN, items, stream: new ReadableStream(), r: /x/ }, () => items);
    for (const args of [cycle, hostile, proxy]) trail.record("t", args, () => args);
    trail.record("t", JSON.parse('{"__proto__": {"password": "x"}}'), () => 1);
  });
  assert.deepEqual(starts[0].args, { n: 10, big: String(2n ** 70n), d: "1970-01-01T00:00:00.000Z", m: { k: 1 }, s: [1], f: "<function>" });
  assert.equal(ends[0].output.data, null);
  assert.deepEqual([starts[1].args.b, starts[1].args.nan, starts[1].args.e], ["aGk=", "NaN", { name: "Error", message: "x" }]);
  assert.deepEqual([...items], [1], "a generator is not consumed");
  assert.deepEqual(starts.slice(2, 5).map(({ args, removed }) => [args, removed[0].path]), Array(3).fill([null, "$.args"]));
  assert.equal(JSON.stringify(starts[5].args), '{"__proto__":{"password":"[redacted]"}}');
});

test("async generators are recorded to their last item", async (t) => {
  const { starts, ends } = await recorded(t, async (trail) => {
    const inner = trail.tool(() => 1, { name: "inner" });
    const count = trail.tool(async function* count({ to }) {
      for (let n = 1; n <= to; n++) { inner(); yield n; }
    });
    const seen = [];
    for await (const n of count({ to: 3 })) seen.push(n);
    assert.deepEqual(seen, [1, 2, 3]);
    for await (const n of count({ to: 9 })) if (n === 2) break;
  });
  const counts = ends.filter((end) => end.tool_name === "count");
  assert.deepEqual(counts[0].output.data, { items: 3, first: 1, last: 3 });
  assert.equal(counts[1].call_state, "cancelled");
  const outer = starts.find((start) => start.tool_name === "count");
  assert.equal(starts.find((start) => start.tool_name === "inner").parent_invocation_id, outer.invocation_id);
});

test("tools with a contract are announced once, and their calls have its digest", async (t) => {
  const { starts, server } = await recorded(t, async (trail) => {
    const options = { name: "w", description: "Weather.", inputSchema: { type: "object", properties: { city: { type: "string" } } } };
    trail.tool(() => 1, options)();
    trail.tool(() => 1, options)();
    trail.tool(() => 1, { name: "plain" })();
    await trail.flush();
  });
  assert.equal(server.tools.length, 2, "the digest, then the tool");
  assert.equal(server.tools[1].input_schema.properties.city.type, "string");
  assert.equal(starts[0].tool_version, server.tools[0].digest);
  assert.equal(starts[2].tool_version, undefined);
});

test("capture can be reduced", async (t) => {
  const { starts, ends } = await recorded(t, (trail) => {
    trail.tool(() => ({ a: [1, 2.5] }), { name: "shape", capture: "shape" })({ x: "secret" });
    trail.tool(() => { throw new Error("secret"); }, { name: "none", capture: "none" });
    assert.throws(trail.tool(() => { throw new Error("secret"); }, { name: "none", capture: "none" }));
  });
  assert.deepEqual([starts[0].args, ends[0].output.data], [{ x: "string" }, { a: ["integer", "number"] }]);
  assert.deepEqual([starts[1].args, ends[1].output.error.message], [null, ""]);
});

test("without a server a trail is off, and a tool that must be recorded does not run", async (t) => {
  const off = new Trail({ url: "", apiKey: "" });
  assert.equal(off.tool((n) => n)(5), 5);
  assert.deepEqual(off.stats().emitted, 0);
  assert.throws(() => new Trail({ url: "http://x", whenFull: "raise" }), TypeError);
  assert.throws(() => new Trail({ spool: "tape" }), TypeError);

  const server = await serving(t);
  const strict = new Trail({ ...server.options, whenFull: "raise", maxBytes: 1500 });
  let runs = 0;
  const tool = strict.tool(() => { runs += 1; }, { name: "t" });
  server.plan = () => ({ status: 503 });
  assert.throws(() => { for (let n = 0; n < 50; n++) tool(); }, SpoolFullError);
  assert.ok(runs > 0 && runs < 50);
  server.plan = () => undefined;
  await strict.close(10);
});

test("OpenTelemetry's span gives the trace, without a dependency on it", async (t) => {
  const key = Symbol.for("opentelemetry.js.api.1");
  const span = { spanContext: () => ({ traceId: "a".repeat(32), spanId: "b".repeat(16), traceFlags: 1 }) };
  globalThis[key] = { context: { active: () => ({ getValue: (name) => (name === Symbol.for("OpenTelemetry Context Key SPAN") ? span : undefined) }) } };
  t.after(() => { delete globalThis[key]; });
  const { starts } = await recorded(t, (trail) => {
    trail.record("outer", {}, () => trail.record("inner", {}, () => 1));
  });
  assert.equal(starts[0].trace_id, "a".repeat(32));
  assert.equal(starts[0].traceparent, `00-${"a".repeat(32)}-${"b".repeat(16)}-01`);
  assert.equal(starts[1].traceparent, undefined, "the enclosing call has the same span");
});

test("an event of the contract is recorded as it is, without secrets", async (t) => {
  const { ends } = await recorded(t, (trail) => {
    trail.emit({
      type: "toolExecutionEnd", tool_name: "t", turn_id: "turn-1", call_id: "c", started_at: "2026-11-20T10:15:00Z",
      ended_at: "2026-11-20T10:15:01Z", duration_ms: 1000, is_error: false, call_state: "cancelled",
      output: { password: "hush" }, auth: "hush", producer_id: "forged", custom: { kept: 1 },
    });
  });
  const [end] = ends;
  assert.deepEqual([end.output, end.auth, end.custom, end.turn_id], [{ password: "[redacted]" }, undefined, { kept: 1 }, "turn-1"]);
  assert.notEqual(end.producer_id, "forged");
  assert.match(end.event_id, /^[0-9a-f-]{36}$/);
});
