// The demo executor in JavaScript: tools that do real work in this checkout, recorded by the SDK as any other
// program's. `manage.py up --demo --js` starts it; it knows only the server's URL and an API key.
import { createReadStream } from "node:fs";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { Trail } from "../dist/index.mjs";

const ROOT = join(import.meta.dirname, "..", "..");
const FOLDERS = ["docs", "docs/adr", "sdk-js/src", "sdk-js/src/spool", "docs/frameworks"];
const WORDS = ["spool", "ledger", "kill", "tenant", "redact", "flush", "guard"];
const FIRST_RUNS = 12; // at once, so that there is something to see

const trail = new Trail();
const stop = new AbortController();
for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => { stop.abort(); });

const listFiles = trail.tool(async function list_files({ folder }) {
  const entries = await readdir(join(ROOT, folder), { withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => entry.name);
}, { description: "The files in a folder of the repository.", inputSchema: { type: "object", properties: { folder: { type: "string" } } } });

const readText = trail.tool(async function read_text({ path, characters = 2000 }) {
  return (await readFile(join(ROOT, path), "utf8")).slice(0, characters);
}, { description: "The beginning of a text file." });

const findLines = trail.tool(async function* find_lines({ path, word }) {
  let number = 0;
  for await (const line of createInterface({ input: createReadStream(join(ROOT, path)) })) {
    number += 1;
    if (line.toLowerCase().includes(word)) yield { number, line: line.slice(0, 120) };
  }
}, { description: "The lines of a file with a word, one by one." });

const measure = trail.tool(async function measure_file({ path }) {
  const [{ size, mtimeMs }, data] = await Promise.all([stat(join(ROOT, path)), readFile(join(ROOT, path))]);
  const packed = await promisify(gzip)(data);
  trail.current().routing = { codec: "gzip" };
  return { path, bytes: size, packed: packed.length, ratio: packed.length / Math.max(size, 1), days: Math.floor((Date.now() - mtimeMs) / 86_400_000) };
}, {
  description: "How large a file is, and how well it can be compressed.",
  outputSchema: { type: "object", properties: { path: { type: "string" }, bytes: { type: "integer" } }, required: ["path", "bytes"] },
});

const probe = trail.tool(async function probe_server({ path, withinMs = 2000 }) {
  const response = await fetch(new URL(path, process.env.TOOLTRAIL_URL), { signal: AbortSignal.timeout(withinMs) });
  await response.arrayBuffer();
  if (!response.ok) throw Object.assign(new Error(`HTTP ${response.status} from ${path}`), { status: response.status });
  return { path, status: response.status, type: response.headers.get("content-type") };
}, { description: "Asks the server for a page.", timeoutsMs: 2000 });

/** One agent's run: it looks for a word in some files, and measures where it was found. */
const survey = trail.tool(async function survey_folder({ folder, word }) {
  const names = await listFiles({ folder });
  const paths = names.sort(() => Math.random() - 0.5).slice(0, 3).map((name) => `${folder}/${name}`);
  const found = await Promise.all(paths.map(async (path) => {
    let lines = 0;
    for await (const line of findLines({ path, word })) if (++lines >= 5 || !line) break;
    return { path, lines };
  }));
  const best = found.sort((a, b) => b.lines - a.lines)[0];
  if (best) await Promise.all([measure({ path: best.path }), readText({ path: best.path })]);
  return { folder, word, best };
});

const mistakes = [
  () => readText({ path: "docs/answers.md" }), // which does not exist
  () => probe({ path: "/no-such-page" }),
  () => probe({ path: "/healthz", withinMs: 1 }),
];

async function run(number) {
  const pick = (list) => list[Math.floor(Math.random() * list.length)];
  const runId = `scout_run_${number.toString(16)}`;
  const who = { agent: "release_scout", agentVersion: "1.4.0", model: "gpt-5-mini", provider: "openai" };
  const context = { ...who, runId, principal: `customer-${number % 40}@example.com`, environment: "demo", workflowId: "release_notes" };
  await trail.trace({ traceId: `demo-js-${number.toString(16)}`, ...context }, async () => {
    await survey({ folder: pick(FOLDERS), word: pick(WORDS) });
    await probe({ path: "/healthz" }).catch(() => {});
    if (Math.random() < 0.25) await pick(mistakes)().catch(() => {});
  });
}

let number = Math.floor(Date.now() / 1000);
await Promise.all(Array.from({ length: FIRST_RUNS }, () => run(number++)));
while (!stop.signal.aborted) {
  await sleep(3000 + Math.random() * 6000, undefined, { signal: stop.signal }).catch(() => {});
  if (!stop.signal.aborted) await run(number++).catch((error) => { console.error(error); });
}
await trail.close(1);
