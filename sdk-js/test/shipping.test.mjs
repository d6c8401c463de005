// Spool and shipper: what a failing server, a full spool or a killed process costs.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { Trail } from "../dist/index.mjs";
import { bounded, some } from "./sampling.mjs";
import { KEY, ofType, serving, until } from "./server.mjs";

const files = (server) =>
  readdirSync(server.spoolDir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath ?? entry.path, entry.name));
const gaps = (server) => ofType(server, "gap");

/** Every number of every producer is an event or in a gap, once. */
function balance(server) {
  const numbers = new Map();
  for (const event of server.events.values()) {
    const own = numbers.get(event.producer_id) ?? numbers.set(event.producer_id, []).get(event.producer_id);
    if (event.type === "gap") for (let n = event.from_seq; n <= event.to_seq; n++) own.push(n);
    else own.push(event.producer_seq);
  }
  for (const [producer, own] of numbers) {
    assert.deepEqual(own.sort((a, b) => a - b), own.map((_, at) => at), producer);
  }
  return numbers;
}

test("what could not be sent is sent when the server answers again, once", async (t) => {
  const server = await serving(t);
  const trail = new Trail(server.options);
  let failures = 0;
  server.plan = () => (failures++ < 2 ? { status: 503, headers: { "retry-after": "0" } } : undefined);
  for (let n = 0; n < 10; n++) trail.record("t", { n }, () => n);
  assert.equal(await trail.flush(10), true);
  assert.equal(server.events.size, 20);
  const ids = new Set(server.requests.map(({ headers }) => headers["idempotency-key"]));
  assert.deepEqual([ids.size, server.requests.length], [1, 3]);
  assert.equal(trail.stats().acknowledged, 20);
  await trail.close();
  assert.deepEqual(files(server).map((path) => path.split("/").at(-1)).sort(), ["acknowledged.json", "origin.json"]);
});

test("the server's Retry-After is kept, also by a flush", async (t) => {
  const server = await serving(t);
  const trail = new Trail(server.options);
  server.plan = () => (server.requests.length === 1 ? { status: 429, headers: { "retry-after": "1" } } : undefined);
  trail.record("t", {}, () => 1);
  const began = performance.now();
  assert.equal(await trail.flush(10), true);
  assert.ok(performance.now() - began >= 1000);
  await trail.close();
});

test("a flush and a close return in time if the server does not answer", async (t) => {
  const server = await serving(t);
  server.plan = () => ({ status: 500 });
  const trail = new Trail(server.options);
  trail.record("t", {}, () => 1);
  assert.equal(await trail.flush(0.2), false);
  assert.equal(await trail.close(0.5), false);
  assert.ok(files(server).some((path) => path.endsWith(".batch")), "it waits for the next process");
  server.plan = () => undefined;
  const next = new Trail(server.options); // in this process: the first one has released its home
  next.record("t", {}, () => 2);
  assert.equal(await next.close(10), true);
  assert.equal(server.events.size, 4);
  balance(server);
});

test("a batch that is too large is split, and a single event loses its payloads", async (t) => {
  const server = await serving(t);
  server.plan = ({ lines }) => (lines.some((line) => line.includes("xxx")) || lines.length > 3 ? { status: 413 } : undefined);
  const trail = new Trail(server.options);
  for (let n = 0; n < 5; n++) trail.record("t", { n, big: n === 2 ? "xxx" : "" }, () => n);
  assert.equal(await trail.close(10), true);
  assert.equal(server.events.size, 10);
  const slim = ofType(server, "toolExecutionStart").find((event) => event.args === null);
  assert.deepEqual(slim.removed, [{ path: "$.args", reason: "too-large" }]);
  balance(server);
});

test("a batch that the server refuses for good is laid aside, and declared", async (t) => {
  const server = await serving(t);
  server.plan = () => (server.requests.length === 1 ? { status: 422, document: { detail: "another body" } } : undefined);
  const trail = new Trail(server.options);
  trail.record("t", {}, () => 1);
  await trail.flush(5);
  trail.record("t", {}, () => 2);
  assert.equal(await trail.close(10), true);
  const reason = files(server).find((path) => path.endsWith(".reason"));
  assert.equal(readFileSync(reason, "utf8"), "422 another body\n");
  assert.deepEqual(gaps(server).map(({ from_seq, to_seq, reason }) => [from_seq, to_seq, reason]), [[0, 1, "refused"]]);
  balance(server);
});

test("a full spool drops payloads first, then the oldest events, and declares them", async (t) => {
  const server = await serving(t);
  server.plan = () => ({ status: 503 });
  const trail = new Trail({ ...server.options, maxBytes: 60_000 });
  for (let n = 0; n < 300; n++) {
    trail.record("t", { n, text: "y".repeat(200) }, () => n);
    if (n % 30 === 29) await trail.flush(0.02);
  }
  assert.ok(trail.stats().dropped["spool-full"] > 0);
  server.plan = () => undefined;
  await until(() => trail.stats().waiting === 0 || (void trail.flush(1), false));
  await trail.close(10);
  assert.equal([...balance(server).values()][0].length, 600);
});

test("events that waited for too long are dropped and declared", async (t) => {
  const server = await serving(t);
  server.plan = () => ({ status: 503, headers: { "retry-after": "1" } });
  const trail = new Trail({ ...server.options, maxAgeDays: 0.1 / 86_400 });
  trail.record("t", {}, () => 1);
  await trail.flush(0.05);
  await until(() => server.requests.length > 0);
  await new Promise((resolve) => setTimeout(resolve, 200));
  await until(() => trail.stats().dropped["expired"] === 2 || (void trail.flush(0.1), false));
  server.plan = () => undefined;
  assert.equal(await trail.flush(10), true);
  await trail.close();
  assert.deepEqual(gaps(server).map(({ count, reason }) => [count, reason]), [[2, "expired"]]);
});

test("a damaged batch is sent without its damaged line, which is declared", async (t) => {
  const server = await serving(t);
  server.plan = () => ({ status: 503 });
  const trail = new Trail(server.options);
  for (let n = 0; n < 3; n++) trail.record("t", { n }, () => n);
  await trail.close(0.2);
  const path = files(server).find((each) => each.endsWith(".batch"));
  const data = readFileSync(path);
  data[data.indexOf(10) + 5] = 10; // in the second line
  writeFileSync(path, data);
  server.plan = () => undefined;
  const next = new Trail(server.options);
  next.record("t", {}, () => 1);
  assert.equal(await next.close(10), true);
  assert.deepEqual(gaps(server).map(({ from_seq, to_seq, reason }) => [from_seq, to_seq, reason]), [[1, 1, "damaged"]]);
  balance(server);
});

for (const spool of ["memory", "fsync"]) {
  test(`events are sent from a spool of kind ${spool}`, async (t) => {
    const server = await serving(t);
    const trail = new Trail({ ...server.options, spool });
    for (let n = 0; n < 5; n++) trail.record("t", { n }, () => n);
    assert.equal(files(server).some((path) => path.endsWith(".open")), spool === "fsync");
    assert.equal(trail.stats().inMemory, spool === "memory" ? 10 : 0);
    assert.equal(await trail.close(10), true);
    assert.equal(server.events.size, 10);
  });
}

test("a folder that cannot be made leaves events in memory", async (t) => {
  const server = await serving(t);
  writeFileSync(join(server.spoolDir, "file"), "");
  const trail = new Trail({ ...server.options, spoolDir: join(server.spoolDir, "file") });
  trail.record("t", {}, () => 1);
  assert.equal(await trail.close(10), true);
  assert.equal(server.events.size, 2);
});

const PROLOGUE = `
const { writeSync } = require("node:fs");
const { Trail } = require(${JSON.stringify(join(import.meta.dirname, "../dist/index.js"))});
const trail = new Trail();
const echo = trail.tool(function echo({ n }) { return n; });
`;

/** Runs a program with a trail and a tool `echo`. */
function run(server, code) {
  const variables = { TOOLTRAIL_URL: server.url, TOOLTRAIL_API_KEY: KEY, TOOLTRAIL_SPOOL_DIR: server.spoolDir };
  return spawn(process.execPath, ["-e", PROLOGUE + code], {
    env: { ...process.env, ...variables }, stdio: ["ignore", "pipe", "inherit"],
  });
}

async function adopt(server) {
  const heir = new Trail(server.options);
  heir.record("heir", {}, () => 1);
  assert.equal(await heir.close(20), true);
}

test("a program sends its events before it ends", async (t) => {
  const server = await serving(t);
  const [code] = await once(run(server, "for (let n = 0; n < 10; n++) echo({ n });"), "exit");
  assert.equal(code, 0);
  assert.equal(server.events.size, 20);
  assert.deepEqual(files(server).filter((path) => /open|batch|owner/.test(path)), []);
});

for (const goodbye of some("goodbye", ["process.exit(0)", "process.kill(process.pid, 'SIGKILL')", "process.abort()"])) {
  test(`events wait for the next process after ${goodbye}`, async (t) => {
    const server = await serving(t);
    await once(run(server, `echo({ n: 1 }); ${goodbye};`), "exit");
    await adopt(server);
    assert.deepEqual(ofType(server, "toolExecutionEnd").map((event) => event.tool_name).sort(), ["echo", "heir"]);
    balance(server);
  });
}

test("a killed program loses no call that had returned", async (t) => {
  const server = await serving(t);
  const kills = process.env["TOOLTRAIL_KILLS"] ?? bounded(3, 10);
  for (let kill = 0; kill < kills; kill++) {
    server.plan = Math.random() < 0.5 ? () => ({ status: 503 }) : () => undefined;
    const program = run(server, 'for (let n = 0; ; n++) { echo({ n }); writeSync(1, n + "\\n"); }');
    let text = "";
    const wanted = 1 + Math.floor(Math.random() * 1500);
    program.stdout.on("data", (chunk) => {
      text += chunk;
      if (text.split("\n").length > wanted) program.kill("SIGKILL");
    });
    await once(program, "close");
    server.plan = () => undefined;
    await adopt(server);
    const returned = text.slice(0, text.lastIndexOf("\n")).split("\n").length;
    const ended = ofType(server, "toolExecutionEnd").filter((event) => event.producer_id.includes(`-${program.pid}-`));
    const results = new Set(ended.map((event) => event.output.data));
    for (let n = 0; n < returned; n++) assert.ok(results.has(n), `call ${n} of ${returned} is lost`);
  }
  balance(server);
});

test("each worker thread is a producer, and one that is terminated loses nothing", async (t) => {
  const server = await serving(t);
  const code = `${PROLOGUE.replace("new Trail()", "new Trail(require('node:worker_threads').workerData)")}
    const { parentPort } = require("node:worker_threads");
    for (let n = 0; n < 20; n++) echo({ n });
    parentPort.postMessage("done");
    setInterval(() => {}, 1000);`;
  server.plan = () => ({ status: 503 });
  const workers = [1, 2].map(() => new Worker(code, { eval: true, workerData: server.options }));
  await Promise.all(workers.map((worker) => once(worker, "message")));
  await workers[0].terminate(); // the other worker, or the next trail, takes its events over
  await workers[1].terminate();
  server.plan = () => undefined;
  await adopt(server);
  const producers = new Set(ofType(server, "toolExecutionEnd").map((event) => event.producer_id));
  assert.equal(producers.size, 3);
  assert.equal(ofType(server, "toolExecutionEnd").filter((event) => event.tool_name === "echo").length, 40);
  balance(server);
});

test("threads that start at once share one folder", async (t) => {
  const server = await serving(t);
  server.plan = () => ({ status: 503 });
  const code = `
    const { parentPort, workerData } = require("node:worker_threads");
    const { Trail } = require(${JSON.stringify(join(import.meta.dirname, "../dist/index.js"))});
    parentPort.postMessage("ready");
    Atomics.wait(workerData.gate, 0, 0);
    const trail = new Trail(workerData.options);
    trail.record("echo", {}, () => 1);
    parentPort.postMessage(trail.stats().inMemory);`;
  for (let round = 0; round < bounded(2, 10); round++) {
    const gate = new Int32Array(new SharedArrayBuffer(4));
    const options = { ...server.options, spoolDir: `${server.spoolDir}/${round}`, exitTimeout: 0.1 };
    const workers = Array.from({ length: 4 }, () => new Worker(code, { eval: true, workerData: { gate, options } }));
    // They end by themselves: Node aborts if a thread is terminated while it begins to compress.
    const exits = Promise.all(workers.map((worker) => once(worker, "exit")));
    await Promise.all(workers.map((worker) => once(worker, "message")));
    const counts = Promise.all(workers.map((worker) => once(worker, "message")));
    Atomics.store(gate, 0, 1);
    Atomics.notify(gate, 0);
    assert.deepEqual((await counts).flat(), [0, 0, 0, 0]);
    await exits;
  }
});

test("child processes are producers of their own", async (t) => {
  const server = await serving(t);
  const code = `
    if (process.env.CHILD) { echo({ n: 1 }); }
    else {
      echo({ n: 0 });
      const { spawnSync } = require("node:child_process");
      spawnSync(process.execPath, ["-e", process.env.CODE], { env: { ...process.env, CHILD: "1" } });
    }`;
  process.env.CODE = PROLOGUE + code;
  t.after(() => delete process.env.CODE);
  await once(run(server, code), "exit");
  assert.equal(server.events.size, 4);
  assert.equal(balance(server).size, 2);
});

test("timers do not keep a program alive, nor hold the context of a call", async (t) => {
  const server = await serving(t);
  server.plan = () => ({ status: 503 });
  const began = performance.now();
  const program = run(server, "process.env.TOOLTRAIL_EXIT_TIMEOUT = '0.2'; echo({ n: 1 });");
  const [code] = await once(program, "exit");
  assert.equal(code, 0);
  assert.ok(performance.now() - began < 10_000);
});
