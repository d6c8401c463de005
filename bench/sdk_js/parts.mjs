// What the parts of a recorded call cost that no SDK can do without, and other ways to do them: µs of
// processor time, medians of rounds in turns in one process. Other load on the machine changes little.
//
//     node bench/sdk_js/parts.mjs [ROUNDS]
import { hash } from "node:crypto";
import { closeSync, mkdtempSync, openSync, rmSync, writeSync, writevSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { ARGS, RESULT } from "./payloads.mjs";

const ROUNDS = Number(process.argv[2] ?? 25);
const CALLS = 2000;
const MEMBERS = "m".repeat(420); // ids, times, names and the producer's number: as much as a line has
const folder = mkdtempSync(join(tmpdir(), "tooltrail-parts-"));
const path = join(folder, "segment");
const room = Buffer.allocUnsafeSlow(64 * 1024);
const texts = [ARGS, RESULT].map((payload) => MEMBERS + JSON.stringify(payload));
const lines = texts.map((text) => Buffer.from(text));
const sizes = lines.map((line) => line.length);
let file = -1;
let count = 0; // so that nothing is optimized away

/** Both lines, made anew. */
const made = (write) => () => { for (const text of texts) count += write(`${count}${text}`); };

const PARTS = {
  "two writeSync, ready bytes": () => { for (const line of lines) writeSync(file, line); },
  "two writeSync, a view of a kept buffer": () => { for (const size of sizes) writeSync(file, room.subarray(0, size)); },
  "two writeSync, a part of a kept buffer": () => { for (const size of sizes) writeSync(file, room, 0, size); },
  "two writeSync, texts as UTF-8": () => { for (const text of texts) writeSync(file, text, null, "utf8"); },
  "two writeSync, texts as Latin-1": () => { for (const text of texts) writeSync(file, text, null, "latin1"); },
  "one writeSync of both (not durable in time)": () => { writeSync(file, room, 0, sizes[0] + sizes[1]); },
  "one writev of both (not durable in time)": () => { writevSync(file, lines); },
  "JSON.stringify of arguments and result": () => { count += JSON.stringify(ARGS).length + JSON.stringify(RESULT).length; },
  "text to bytes, write": made((text) => room.write(text)),
  "text to bytes, utf8Write": made((text) => room.utf8Write(text, 0, room.length)),
  "text to bytes, latin1Write (ASCII only)": made((text) => room.latin1Write(text, 0, room.length)),
  "crc32 of both lines": () => { for (const line of lines) count += crc32(line); },
  "SHA-256 of the arguments": () => { count += hash("sha256", texts[0]).length; },
};

const taken = Object.fromEntries(Object.keys(PARTS).map((name) => [name, []]));
for (let round = 0; round < ROUNDS; round++) {
  for (const [name, part] of Object.entries(PARTS)) {
    file = openSync(path, "w");
    for (let call = 0; call < CALLS / 5; call++) part();
    const began = process.cpuUsage();
    for (let call = 0; call < CALLS; call++) part();
    const { user, system } = process.cpuUsage(began);
    taken[name].push((user + system) / CALLS);
    closeSync(file);
  }
}
rmSync(folder, { recursive: true });
for (const [name, each] of Object.entries(taken)) {
  const median = each.sort((a, b) => a - b)[Math.floor(ROUNDS / 2)];
  console.log(name.padEnd(46), median.toFixed(2).padStart(6));
}
if (count === 0) throw new Error("nothing was done");
