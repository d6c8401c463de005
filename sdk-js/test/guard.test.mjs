// Outputs guarded by tool-output-guard. The package is not a dependency: recorded runs of it stand in,
// which call the hooks and return or throw as it did.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Trail } from "../dist/index.mjs";
import { ofType, serving } from "./server.mjs";

const recorded = new URL("../../sdk/tests/conformance/output_guard_guard.jsonl", import.meta.url);
const rows = readFileSync(recorded, "utf8").trimEnd().split("\n").map((line) => JSON.parse(line))
  .filter(({ api, hooks, hook_throws, tool_output }) =>
    api === "guard" && tool_output !== undefined && !hook_throws &&
    ["onValidationPass", "onValidationFail"].every((hook) => hooks?.includes(hook)));

/** A `guard` that does what the package did in this run. */
const replayed = (row) => (fn, schema, options) => async (...args) => {
  const output = await fn(...args);
  for (const call of row.calls) {
    if (call.hook === "onValidationPass") options.onValidationPass(call.data);
    if (call.hook === "onValidationFail") options.onValidationFail(call.violations);
  }
  if (row.outcome.throws) throw Object.assign(new Error(row.outcome.throws.message), row.outcome.throws);
  return row.outcome.same_object ? output : row.outcome.returns;
};

function outcomesOf({ options, outcome, calls }) {
  if (outcome.throws) return ["failed"];
  if (calls.some(({ hook }) => hook === "onValidationPass")) return options?.onInvalid === "strip-extra" ? ["passed", "stripped"] : ["passed"];
  return [{ "coerce-and-warn": "coerced", "strip-extra": "stripped" }[options.onInvalid] ?? options.onInvalid];
}

test("verdicts of all strategies arrive as the package reports them", async (t) => {
  const server = await serving(t);
  const trail = new Trail({ ...server.options, redact: false });
  for (const row of rows) {
    const tool = trail.guarded(replayed(row), async () => row.tool_output, row.schema, { ...row.options, name: row.id });
    if (row.outcome.throws) await assert.rejects(tool({}), { message: row.outcome.throws.message });
    else assert.deepEqual(await tool({}), row.outcome.returns, row.id);
  }
  assert.equal(await trail.close(20), true);
  const ends = new Map(ofType(server, "toolExecutionEnd").map((end) => [end.tool_name, end]));
  const strategies = new Set();
  for (const row of rows) {
    const { guard } = ends.get(row.id);
    const failed = row.calls.find(({ hook }) => hook === "onValidationFail");
    if (row.outcome.throws && !failed) { // a schema that it could not use: no verdict
      assert.equal(guard, undefined, row.id);
      continue;
    }
    strategies.add(guard.strategy);
    assert.equal(guard.strategy, row.options?.onInvalid ?? "throw", row.id);
    assert.ok(outcomesOf(row).includes(guard.outcome), `${row.id}: ${guard.outcome}`);
    assert.deepEqual(guard.violations, row.outcome.throws?.violations ?? failed?.violations ?? [], row.id);
    if (guard.outcome !== "passed") assert.deepEqual(guard.received, row.tool_output, row.id);
  }
  strategies.delete("bogus"); // the package throws for an unknown one, like for `throw`
  assert.deepEqual([...strategies].sort(), ["coerce-and-warn", "error-result", "fallback", "strip-extra", "throw"]);
});

test("the host's hooks are called, and secrets in violations are removed", async (t) => {
  const server = await serving(t);
  const trail = new Trail(server.options);
  const violations = [
    { path: "$.password", code: "WRONG_TYPE", expected: "number", received: "string", receivedValue: "hush", message: "got hush", llmMessage: "hush" },
    { path: "$.n", code: "WRONG_TYPE", expected: "number", received: "string", receivedValue: "x", message: "got x", llmMessage: "x" },
  ];
  const guard = (fn, schema, options) => async (...args) => {
    await fn(...args);
    options.onValidationFail(violations);
    throw Object.assign(new Error("Validation failed: hush"), { name: "ValidationError", violations });
  };
  const seen = [];
  const tool = trail.guarded(guard, async function lookup() { return { password: "hush", n: "x" }; }, {}, { onValidationFail: (all) => seen.push(...all) });
  await assert.rejects(tool({}), /Validation failed: hush/);
  await trail.close(10);
  assert.deepEqual(seen, violations);
  const [end] = ofType(server, "toolExecutionEnd");
  assert.equal(JSON.stringify(end).includes("hush"), false);
  assert.deepEqual([end.guard.outcome, end.guard.violations[0].message, end.guard.violations[1].message], ["failed", "", "got x"]);
  assert.deepEqual([end.output.error.type, end.output.error.message], ["VALIDATION", "The output breaks its schema at $.password, $.n"]);
});
