// The server is away for long: nothing is lost. Meanwhile the program's clocks run faster than the machine's.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { test } from "node:test";
import { some } from "./sampling.mjs";
import { KEY, ofType, serving } from "./server.mjs";

const AWAY_MS = 5000; // of this machine's time
const CALLS = 300;

/** Makes calls while the server is away for `seconds` of its own time, which pass in AWAY_MS. */
const program = (seconds) => `
  const { performance } = require("node:perf_hooks");
  const pace = ${(seconds * 1000) / AWAY_MS};
  const [now, began, beganAt, set] = [performance.now.bind(performance), performance.now(), Date.now(), setTimeout];
  const isAway = () => now() - began < ${AWAY_MS};
  const passed = () => Math.min(now() - began, ${AWAY_MS}) * pace + Math.max(now() - began - ${AWAY_MS}, 0);
  performance.now = () => began + passed();
  Date.now = () => beganAt + Math.round(passed());
  globalThis.setTimeout = (work, ms, ...given) => set(work, isAway() ? ms / pace : ms, ...given);

  const { Trail } = require(${JSON.stringify(join(import.meta.dirname, "../dist/index.js"))});
  const trail = new Trail();
  const echo = trail.tool(async function echo({ n }) { return n; });
  (async () => {
    for (let n = 0; n < ${CALLS}; n++) {
      await echo({ n });
      await new Promise((resolve) => set(resolve, ${AWAY_MS / CALLS}));
    }
    // Node's timers cut fractions of a millisecond off: the calls may end before the outage.
    while (isAway()) await new Promise((resolve) => set(resolve, 10));
    process.stdout.write("over");
    await new Promise((resolve) => process.stdin.once("data", resolve));
    await trail.flush(60); // close gives up after a failure, and one may be on its way
    process.exitCode = (await trail.close(60)) ? 0 : 1;
    process.stdin.destroy();
  })();
`;

// Events wait for seven days by default, so that the first ones would have been given up just then.
const OUTAGES = [["ten minutes", 600, 7], ["seven days", 7 * 86_400, 8]];
for (const [name, seconds, maxAgeDays] of some("outage", OUTAGES)) {
  test(`the server is away for ${name}, and nothing is lost`, async (t) => {
    const server = await serving(t);
    let asked = 0;
    const failures = [{ status: 503 }, { status: 500 }, { status: 429, headers: { "retry-after": "1" } }, { status: 408 }];
    server.plan = () => failures[asked++ % failures.length];
    const variables = { TOOLTRAIL_URL: server.url, TOOLTRAIL_API_KEY: KEY, TOOLTRAIL_SPOOL_DIR: server.spoolDir, TOOLTRAIL_MAX_AGE_DAYS: maxAgeDays };
    const child = spawn(process.execPath, ["-e", program(seconds)], {
      env: { ...process.env, ...variables }, stdio: ["pipe", "pipe", "ignore"],
    });
    t.after(() => child.kill("SIGKILL"));
    await once(child.stdout, "data");
    assert.ok(asked >= 4, "it tried again and again");
    assert.equal(server.events.size, 0);
    server.plan = () => undefined;
    child.stdin.write("the server is back\n");
    const [code] = await once(child, "exit");
    assert.equal(code, 0);
    const ended = ofType(server, "toolExecutionEnd");
    assert.deepEqual(ended.map((event) => event.output.data).sort((a, b) => a - b), Array.from({ length: CALLS }, (_, n) => n));
    assert.deepEqual(ofType(server, "gap"), []);
    const times = ended.map((event) => Date.parse(event.started_at));
    assert.ok(Math.max(...times) - Math.min(...times) > seconds * 900, "its clock ran fast");
  });
}
