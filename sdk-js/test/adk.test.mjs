// Events of the ADK's tools. The package is not a dependency: recorded runs of its executor stand in, which
// emit on their context, and return or throw, as it did.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { listeners, recordContext, recordExecutor } from "../dist/adapters/adk.mjs";
import { Trail } from "../dist/index.mjs";
import { ofType, serving } from "./server.mjs";

const recorded = new URL("../../sdk/tests/conformance/tool_executor.jsonl", import.meta.url);
const rows = readFileSync(recorded, "utf8").trimEnd().split("\n").map((line) => JSON.parse(line));
/** Runs with one start and one end at most: the others are of contexts that throw when they emit. */
const once = rows.filter(({ events }) => events.length <= 3);
const TYPES = { tool_execution_start: "toolExecutionStart", tool_execution_end: "toolExecutionEnd" };
const times = { startedAt: new Date(Date.now() - 1000), endedAt: new Date(Date.now() - 988), durationMs: 12.137 };

/** What an event of a recording contains, with times, of which there are none in it. */
const emitted = (event) => Object.fromEntries(event.fields.map((name) => [name, event[name] ?? times[name]]));

class Context {
  #told = [];
  constructor(id) { this.id = id; }
  emitToolExecutionStart(event) { this.#told.push(["toolExecutionStart", event]); }
  emitToolExecutionEnd(event) { this.#told.push(["toolExecutionEnd", event]); }
  get told() { return this.#told; }
}

/** A tool that does what the recorded one did; `handler` runs where its handler ran. */
const replayed = ({ events, outcome }, handler = () => {}) => ({
  executor: (ctx) => async () => {
    for (const event of events) {
      if (event.event === "tool_execution_start") ctx.emitToolExecutionStart(emitted(event));
      else if (event.event === "tool_execution_end") ctx.emitToolExecutionEnd(emitted(event));
      else await handler(ctx);
    }
    if (outcome.throws) throw Object.assign(new Error(outcome.throws.message, { cause: causeOf(outcome) }), outcome.throws);
    return outcome.returns;
  },
});
const causeOf = ({ cause }) => (cause ? Object.assign(new Error(cause.message), { name: cause.name }) : undefined);

async function shipped(t, work) {
  const server = await serving(t);
  const trail = new Trail({ ...server.options, redact: false });
  await work(trail);
  assert.equal(await trail.close(20), true);
  return server;
}

/** Compares an event with the recorded one; what is ours is beside its members. */
function compare(got, event, more) {
  const expected = { type: TYPES[event.event], ...JSON.parse(JSON.stringify(emitted(event))) };
  const { event_id, producer_id, producer_seq, ...rest } = got;
  assert.match(event_id, /^[0-9a-f-]{36}$/);
  assert.ok(producer_id && producer_seq >= 0);
  for (const name of more) delete rest[name];
  assert.deepEqual(rest, expected);
}

test("events of a context are shipped as they are, and passed on", async (t) => {
  assert.ok(once.length >= 10);
  for (const row of once) {
    const context = new Context(row.turn_id);
    const server = await shipped(t, async (trail) => {
      await replayed(row).executor(recordContext(trail, context))(row.args).catch(() => {});
    });
    const events = row.events.filter(({ event }) => TYPES[event]);
    assert.deepEqual(context.told, events.map((event) => [TYPES[event.event], emitted(event)]), row.id);
    assert.equal(server.events.size, events.length, row.id);
    [...server.events.values()].forEach((got, at) => { compare(got, events[at], []); });
  }
});

test("hosts that can subscribe give listeners", async (t) => {
  const row = once.find(({ events }) => events.length === 3);
  const server = await shipped(t, (trail) => {
    const told = listeners(trail);
    for (const event of row.events) told[TYPES[event.event]]?.(emitted(event));
  });
  const types = [...server.events.values()].map(({ type }) => type);
  assert.deepEqual(types, ["toolExecutionStart", "toolExecutionEnd"]);
});

test("an executor adds the result or the error to the end, and nests what its handler calls", async (t) => {
  for (const row of once) {
    const context = new Context(row.turn_id);
    let outcome;
    const server = await shipped(t, async (trail) => {
      const inner = trail.tool(() => 1, { name: "inner" });
      const execute = recordExecutor(trail, replayed(row, () => { inner(); }), context);
      outcome = await execute(row.args).then((returned) => ({ returned }), (thrown) => ({ thrown }));
    });
    assert.deepEqual(outcome.returned, row.outcome.returns, row.id);
    assert.equal(outcome.thrown?.message, row.outcome.throws?.message, row.id);
    const all = [...server.events.values()];
    const own = all.filter((event) => event.toolName !== undefined);
    const events = row.events.filter(({ event }) => TYPES[event]);
    assert.equal(own.length, events.length, row.id);
    own.forEach((got, at) => { compare(got, events[at], ["invocation_id", "output"]); });
    if (events.length < 2) continue;
    const [start, end] = own;
    assert.equal(end.invocation_id, start.invocation_id);
    if (row.outcome.throws) {
      assert.equal(end.output.status, "error", row.id);
      const because = causeOf(row.outcome) ?? row.outcome.throws;
      assert.equal(end.output.error.message, because.message, row.id);
    } else assert.deepEqual(end.output, { status: "ok", data: row.outcome.returns ?? null }, row.id);
    if (row.events.some(({ event }) => event === "handler")) {
      const nested = all.find((event) => event.tool_name === "inner");
      assert.deepEqual([nested.parent_invocation_id, nested.trace_id], [start.invocation_id, row.turn_id]);
    }
  }
});

test("inside a trace of the program, the events have its trace and the call around them", async (t) => {
  const row = once.find(({ events, outcome }) => events.length === 3 && !outcome.throws);
  const server = await shipped(t, (trail) =>
    trail.trace("trace-1", () =>
      trail.record("around", {}, () => recordExecutor(trail, replayed(row), new Context("turn-1"))(row.args))));
  const around = ofType(server, "toolExecutionStart").find((event) => event.tool_name === "around");
  for (const event of [...server.events.values()].filter(({ toolName }) => toolName)) {
    assert.deepEqual([event.trace_id, event.parent_invocation_id], ["trace-1", around.invocation_id]);
  }
});
