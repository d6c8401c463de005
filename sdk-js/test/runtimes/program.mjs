// What each runtime must do alike: record, nest, redact, send before it ends, and leave what a kill leaves.
//
//     RUNTIME program.mjs record|die
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { Trail } from "../../dist/index.mjs";

const same = createRequire(import.meta.url)("../../dist/index.js");
assert.equal(same.Trail, Trail, "one copy for both kinds of module");
const trail = new Trail();
const inner = trail.tool(async function inner({ n }) {
  await sleep(1);
  return n;
});
const outer = trail.tool(async function outer({ n, password }) {
  const [one, two] = await Promise.all([inner({ n }), inner({ n: n + 1 })]);
  return { sum: one + two, length: password.length };
});
const count = trail.tool(async function* count({ to }) {
  for (let n = 1; n <= to; n++) yield n;
});

if (process.argv[2] === "die") {
  for (let n = 0; n < 50; n++) await inner({ n });
  process.kill(process.pid, "SIGKILL");
  await sleep(60_000);
} else {
  await trail.trace({ traceId: "t", agent: "a" }, async () => {
    assert.deepEqual(await outer({ n: 1, password: "hush" }), { sum: 3, length: 4 });
    const seen = [];
    for await (const n of count({ to: 3 })) seen.push(n);
    assert.deepEqual(seen, [1, 2, 3]);
    await assert.rejects(trail.record("bad", {}, async () => { throw new RangeError("no"); }), RangeError);
  });
}
