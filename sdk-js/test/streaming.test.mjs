// Tools that return their result in items: recorded to the last one, by whatever the tool is wrapped.
import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Trail } from "../dist/index.mjs";
import { recordExecutor } from "../dist/adapters/adk.mjs";
import { recordTools } from "../dist/adapters/ai.mjs";
import { recordTools as recordMastraTools } from "../dist/adapters/mastra.mjs";
import { recordTool } from "../dist/adapters/openaiAgents.mjs";
import { ofType, serving, until } from "./server.mjs";

async function* generator(to, mistake) {
  for (let n = 1; n <= to; n++) yield { n };
  if (mistake) throw mistake;
  return "all";
}

/** What a tool returns; each gives the items of `generator`. */
const KINDS = {
  "a generator": generator,
  "a promise of a generator": async (...given) => generator(...given),
  "an iterable": (...given) => ({ title: "kept", [Symbol.asyncIterator]: () => generator(...given) }),
  "a frozen iterator": (...given) => {
    const items = generator(...given);
    return Object.freeze({ next: () => items.next(), return: () => items.return(), throw: (error) => items.throw(error), [Symbol.asyncIterator]() { return this; } });
  },
  "a stream of the web": (...given) => ReadableStream.from(generator(...given)),
  "a stream of Node": (...given) => Readable.from(generator(...given)),
};
/** A tool of the ADK: it emits its end when its handler has returned, before the first item. */
const adkTool = (run) => ({
  executor: (ctx) => async () => {
    const event = { toolName: "t", turnId: "turn-1", callId: "c", startedAt: new Date() };
    ctx.emitToolExecutionStart({ ...event, args: {} });
    const items = await run();
    ctx.emitToolExecutionEnd({ ...event, endedAt: new Date(), durationMs: 1.5, isError: false });
    return items;
  },
});
const adkContext = { id: "turn-1", emitToolExecutionStart() {}, emitToolExecutionEnd() {} };
/** Wraps a tool `t`, and returns a function that calls it. */
const WRAPPERS = {
  tool: (trail, run) => trail.tool(run, { name: "t", args: () => ({}) }),
  record: (trail, run) => (...given) => trail.record("t", {}, () => run(...given)),
  ai: (trail, run) => (...given) => recordTools(trail, { t: { execute: () => run(...given) } }).t.execute({}),
  mastra: (trail, run) => (...given) => recordMastraTools(trail, { t: { id: "t", execute: () => run(...given) } }).t.execute({}),
  adk: (trail, run) => (...given) => recordExecutor(trail, adkTool(() => run(...given)), adkContext)({}),
  "openai-agents": (trail, run) => (...given) => recordTool(trail, { name: "t", execute: () => run(...given) }).execute({}),
};

async function recorded(t, work) {
  const server = await serving(t);
  const trail = new Trail(server.options);
  await work(trail);
  assert.equal(await trail.close(10), true);
  const bySeq = (a, b) => a.producer_seq - b.producer_seq;
  return { starts: ofType(server, "toolExecutionStart").sort(bySeq), ends: ofType(server, "toolExecutionEnd").sort(bySeq) };
}

for (const [wrapper, wrap] of Object.entries(WRAPPERS)) {
  test(`items that come through ${wrapper} are recorded to their end, failure or cancellation`, async (t) => {
    const mistake = new RangeError("no more");
    const { ends } = await recorded(t, async (trail) => {
      for (const kind of Object.values(KINDS)) {
        const call = wrap(trail, kind);
        const seen = [];
        for await (const item of await call(3)) seen.push(item.n);
        assert.deepEqual(seen, [1, 2, 3]);
        await assert.rejects(async () => { for await (const item of await call(1, mistake)) seen.push(item); }, (error) => error === mistake);
        for await (const item of await call(9)) if (item.n === 2) break;
        await until(() => trail.stats().emitted % 6 === 0); // a stream of Node is destroyed later
      }
    });
    for (const [at, name] of Object.keys(KINDS).entries()) {
      const [whole, broken, stopped] = ends.slice(at * 3);
      const { returned, ...summary } = whole.output.data;
      assert.deepEqual([whole.is_error ?? whole.isError, summary], [false, { items: 3, first: { n: 1 }, last: { n: 3 } }], name);
      assert.equal(returned, name.includes("stream") ? undefined : "all", name);
      assert.deepEqual([broken.output.error.message, broken.call_state], ["no more", undefined], name);
      assert.deepEqual([stopped.is_error ?? stopped.isError, stopped.call_state], [true, "cancelled"], name);
    }
    assert.equal(ends.length, Object.keys(KINDS).length * 3);
  });
}

test("a tool of the ADK ends with its last item, and what runs for an item is nested in it", async (t) => {
  const { starts, ends } = await recorded(t, async (trail) => {
    const inner = trail.tool((n) => n, { name: "inner" });
    const counting = async function* () {
      yield inner(1);
      await new Promise((resolve) => { setTimeout(resolve, 40); });
      yield inner(2);
    };
    for (const made of [() => counting(), () => ReadableStream.from(counting()), () => Readable.from(counting())]) {
      const told = [];
      const context = { ...adkContext, emitToolExecutionEnd: (event) => { told.push(event); } };
      const items = await recordExecutor(trail, adkTool(made), context)({});
      assert.equal(told[0].durationMs, 1.5); // the host is told at once
      for await (const item of items) trail.record("consumer", { item }, () => 1);
    }
    const failing = recordExecutor(trail, adkTool(() => generator(1, new RangeError("no more"))), adkContext);
    await assert.rejects(async () => { for await (const item of await failing({})) assert.ok(item); }, /no more/);
    await recordExecutor(trail, adkTool(() => [1, 2]), adkContext)({}); // a list is no stream
  });
  const outer = starts.filter(({ toolName }) => toolName !== undefined);
  for (const { tool_name, parent_invocation_id: parent } of starts.filter((start) => start.tool_name)) {
    assert.equal(outer.some((start) => start.invocation_id === parent), tool_name === "inner", tool_name);
  }
  const own = ends.filter(({ toolName }) => toolName !== undefined);
  assert.deepEqual(own.map(({ invocation_id }) => invocation_id), outer.map(({ invocation_id }) => invocation_id));
  for (const end of own.slice(0, 3)) {
    assert.ok(end.durationMs > 35, String(end.durationMs));
    assert.ok(new Date(end.endedAt) - new Date(end.startedAt) >= 35);
    assert.equal(end.output.data.items, 2);
  }
  const [failed, list] = own.slice(3);
  assert.deepEqual([failed.isError, failed.output.error.message], [true, "no more"]);
  assert.deepEqual([list.durationMs, list.isError, list.output.data], [1.5, false, [1, 2]]);
});

test("a call is open until its last item, and what runs in it is nested", async (t) => {
  const { starts, ends } = await recorded(t, async (trail) => {
    const inner = trail.tool((n) => n, { name: "inner" });
    const counting = async function* () { yield inner(1); yield inner(2); };
    for (const made of [() => counting(), () => ReadableStream.from(counting()), () => Readable.from(counting())]) {
      const items = trail.tool(made, { name: "outer" })();
      assert.equal(trail.current().isKept, false);
      const before = trail.stats().emitted;
      for await (const item of items) trail.record("consumer", { item }, () => 1);
      assert.equal(trail.stats().emitted, before + 9);
    }
  });
  const outer = new Set(starts.filter(({ tool_name }) => tool_name === "outer").map(({ invocation_id }) => invocation_id));
  for (const { tool_name, parent_invocation_id: parent } of starts) {
    assert.equal(outer.has(parent), tool_name === "inner", tool_name);
  }
  assert.equal(ends.length, 3 * 5);
});

test("a call whose items nobody asks for is cancelled when they are collected", async (t) => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc");
  const { ends } = await recorded(t, async (trail) => {
    const kinds = [generator, (to) => ReadableStream.from(generator(to)), (to) => ({ [Symbol.asyncIterator]: () => generator(to) })];
    await (async () => {
      for (const kind of kinds) trail.record("unread", {}, () => kind(2));
      await trail.tool(generator, { name: "begun" })(2).next();
    })();
    await until(() => (collect(), trail.stats().emitted === 8));
  });
  assert.deepEqual(ends.map(({ tool_name, call_state }) => `${tool_name} ${call_state}`).sort(), ["begun cancelled", ...Array(3).fill("unread cancelled")]);
});

test("a trail that is off hands streams on as they are", async () => {
  const off = new Trail({ url: "", apiKey: "" });
  for (const items of [generator(1), ReadableStream.from([1]), Readable.from([1])]) {
    const { emit } = items;
    assert.equal(await recordExecutor(off, adkTool(() => items), adkContext)({}), items);
    assert.equal(off.record("t", {}, () => items), items);
    assert.equal(items.emit, emit);
  }
});

test("streams and iterators keep what their consumers use", async (t) => {
  class Words extends Readable { /* a class of its own */ }
  class Page {
    #left = 2;
    data = [1];
    async *[Symbol.asyncIterator]() { while (this.#left > 0) yield this.#left--; }
  }
  const all = async (items) => {
    const got = [];
    for await (const item of items) got.push(item);
    return got;
  };
  const { ends } = await recorded(t, async (trail) => {
    const through = (value) => trail.record("t", {}, () => value);
    const words = through(new Words({ objectMode: true, read() { this.push("word"); this.push(null); } }));
    assert.ok(words instanceof Words);
    assert.deepEqual(await words.toArray(), ["word"]);
    const flowing = through(Readable.from(["a", "b"]));
    await new Promise((resolve) => { flowing.on("data", () => {}).on("end", resolve); });
    assert.deepEqual(await Promise.all(through(ReadableStream.from([1, 2, 3])).tee().map(all)), [[1, 2, 3], [1, 2, 3]]);
    assert.equal(await new Response(through(new Blob(["text"]).stream())).text(), "text");
    const page = through(new Page());
    assert.deepEqual([page instanceof Page, page.data, await all(page)], [true, [1], [2, 1]]);
    const talk = trail.tool(async function* () { const said = yield 1; try { yield said; } catch (error) { yield error.message; } }, { name: "talk" })();
    const steps = [await talk.next(), await talk.next("hi"), await talk.throw(new Error("hm")), await talk.return("end"), await talk.next()];
    assert.deepEqual(steps.map(({ value }) => value), [1, "hi", "hm", "end", undefined]);
    assert.equal(talk[Symbol.asyncIterator](), talk);
    await trail.tool(generator)(3).return(); // before the first item
    const locked = ReadableStream.from([1]);
    locked.getReader();
    assert.equal(through(locked), locked);
  });
  const itemsOf = (end) => end.call_state ?? end.output.data.items ?? end.output.data;
  assert.deepEqual(ends.map(itemsOf), [1, 2, 3, 1, 2, "cancelled", "cancelled", "<ReadableStream>"]);
});
