// What is published: its size, its two kinds of modules, and their types, each by the package's own name.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import { some } from "./sampling.mjs";

const require = createRequire(import.meta.url);
const root = join(import.meta.dirname, "..");
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const SIZE_MAX = 150_000; // bytes unpacked, without the source maps
const entries = Object.keys(manifest.exports).filter((name) => name !== "./package.json");
const named = (entry) => `tooltrail${entry.slice(1)}`;

test("the package is small, without dependencies, and contains all that its manifest names", () => {
  const listed = execFileSync("npm", ["pack", "--dry-run", "--json"], { cwd: root, stdio: ["ignore", "pipe", "ignore"] });
  const [{ files }] = JSON.parse(listed);
  const size = files.filter(({ path }) => !path.endsWith(".map")).reduce((sum, each) => sum + each.size, 0);
  assert.ok(size <= SIZE_MAX, `${size} bytes`);
  assert.equal(manifest.dependencies ?? manifest.peerDependencies, undefined);
  const paths = new Set(files.map(({ path }) => `./${path}`));
  for (const entry of entries) {
    for (const conditions of Object.values(manifest.exports[entry])) {
      for (const path of Object.values(conditions)) assert.ok(paths.has(path), path);
    }
  }
  assert.equal(manifest.version, require("../dist/index.js").VERSION);
});

for (const entry of entries) {
  test(`${named(entry)} has the same members as both kinds of module`, async () => {
    const [asModule, asCommonJs] = [await import(named(entry)), require(named(entry))];
    assert.deepEqual(Object.keys(asModule).sort(), Object.keys(asCommonJs).sort());
    for (const [name, value] of Object.entries(asModule)) assert.equal(asCommonJs[name], value);
    assert.ok(Object.keys(asModule).length > 0);
  });
}

const PROGRAM = `
import { Trail, type Call } from "tooltrail";
import { listeners, recordContext, recordExecutor } from "tooltrail/adk";
import { recordTools } from "tooltrail/ai";
import { TooltrailHandler } from "tooltrail/langchain";
import { recordTools as recordMastraTools } from "tooltrail/mastra";
import { recordTransport } from "tooltrail/mcp";
import { recordTool } from "tooltrail/openai-agents";

const trail = new Trail({ url: "", apiKey: "", capture: "shape" });
const getWeather = trail.tool(async function getWeather({ city }: { city: string }) { return { city, celsius: 21.5 }; });
const celsius: Promise<number> = trail.trace({ agent: "a" }, () => getWeather({ city: "London" })).then((report) => report.celsius);
const call: Call = trail.begin("t", {});
call.tokenUsage = { prompt: 1 };
const tools = recordTools(trail, { add: { execute: async (given: { a: number }) => given.a } });
const sum: Promise<number> = tools.add.execute({ a: 1 });
recordMastraTools(trail, tools).add.execute({ a: 1 });
const transport = { async start() {}, async send(_message: { id: number }) {}, async close() {}, sessionId: "s" };
const session: string = recordTransport(trail, transport).sessionId;
recordTool(trail, { name: "t", execute: () => 1 }).name.at(0);
new TooltrailHandler(trail).awaitHandlers satisfies true;
const tool = { executor: (_ctx: { id: string }) => async (_args: unknown) => "text" };
const text: Promise<string> = recordExecutor(trail, tool, recordContext(trail, { id: "turn" }))({});
listeners(trail).toolExecutionStart({});
// @ts-expect-error -- it is no kind of capture
new Trail({ capture: "all" });
export { celsius, session, sum, text };
`;

test("its types are right for ES modules and CommonJS, also under the strictest options", (t) => {
  const folder = mkdtempSync(join(root, "node_modules", ".types-"));
  t.after(() => { rmSync(folder, { recursive: true }); });
  for (const name of ["program.mts", "program.cts"]) writeFileSync(join(folder, name), PROGRAM);
  for (const [module, resolution] of some("resolution", [["nodenext", "nodenext"], ["preserve", "bundler"]])) {
    const strict = ["--strict", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess", "--noEmit", "--target", "es2022"];
    const found = ["--module", module, "--moduleResolution", resolution, "--types", "node"];
    const files = ["program.mts", "program.cts"].map((name) => join(folder, name));
    const compiler = require.resolve("typescript/bin/tsc");
    const args = [compiler, ...strict, ...found, ...files];
    const { status, stdout } = spawnSync(process.execPath, args, { cwd: folder, encoding: "utf8" });
    assert.equal(status, 0, stdout);
  }
});
