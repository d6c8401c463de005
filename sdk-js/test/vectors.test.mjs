// The rows that both SDKs share: written by the Python SDK, which checks them, too
// (tests/sdk_js/test_vectors.py).
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";

const require = createRequire(import.meta.url);
const { canonicalStringify, computeCallId } = require("../dist/canonical.js");
const { Capture } = require("../dist/capture.js");
const { Redactor } = require("../dist/redact.js");
const { openLines, salvage, sealLine } = require("../dist/spool/lines.js");

const rows = (path) =>
  readFileSync(new URL(path, import.meta.url), "utf8").trimEnd().split("\n").map((line) => JSON.parse(line));

/** Compares every row, and names those that differ. */
function compare(given, outcome, expected) {
  const wrong = given
    .map((row) => ({ id: row.id, got: outcome(row), wanted: expected(row) }))
    .filter(({ got, wanted }) => {
      try {
        assert.deepEqual(got, wanted);
        return false;
      } catch {
        return true;
      }
    });
  assert.deepEqual(wrong.slice(0, 12), [], `${wrong.length} of ${given.length} differ`);
}

test("call ids and canonical texts are those of the ADK", () => {
  compare(
    rows("../../sdk/tests/conformance/tool_call_id.jsonl"),
    ({ tool, args_json }) => {
      const args = JSON.parse(args_json);
      return [canonicalStringify({ args, tool }), computeCallId(tool, args)];
    },
    ({ canonical, call_id }) => [canonical, call_id],
  );
});

test("values without a canonical form are refused", () => {
  const cycle = {};
  cycle.cycle = cycle;
  for (const value of [undefined, 1n, () => 1, Symbol("x"), new Date(), new Map(), cycle, { a: undefined }]) {
    assert.throws(() => canonicalStringify(value), TypeError);
  }
});

test("the same is redacted, with the same notes", () => {
  compare(
    rows("vectors/redaction.jsonl"),
    ({ rule, mode, max_bytes, value }) => {
      const notes = [];
      const text = new Capture(mode, new Redactor(rule), max_bytes).encode(value, "$.args", notes);
      return [JSON.parse(text), notes];
    },
    ({ captured, notes }) => [captured, notes],
  );
});

test("the same is saved from damaged segments", () => {
  compare(
    rows("vectors/segments.jsonl"),
    ({ data, first_seq, count }) => {
      const { lines, lost } = salvage(Buffer.from(data, "base64"), first_seq, count);
      return [lines.map(String), lost.map(({ start, stop }) => [start, stop])];
    },
    ({ lines, lost }) => [lines, lost],
  );
});

test("a segment is the same bytes", () => {
  for (const { data, lines, note } of rows("vectors/segments.jsonl").filter(({ note }) => note === "whole")) {
    const bytes = Buffer.concat(lines.map((line) => sealLine(line)));
    assert.equal(bytes.toString("base64"), data, note);
    assert.deepEqual(openLines(bytes).map(String), lines);
  }
});

test("an event has the same leaf in the ledger", () => {
  const sha256 = (...parts) => createHash("sha256").update(Buffer.concat(parts)).digest();
  const uuid = (text) => Buffer.from(text.replaceAll("-", ""), "hex");
  compare(
    rows("vectors/ledger_leaf.jsonl"),
    ({ kind, event_id, invocation_id, received_us, salt, raw }) => {
      const numbers = Buffer.alloc(12);
      numbers.writeBigUInt64BE(BigInt(received_us));
      numbers.writeUInt32BE(Buffer.byteLength(raw), 8);
      const commit = sha256(Buffer.of(2), Buffer.from(salt, "hex"), Buffer.from(raw));
      const entry = Buffer.concat([Buffer.of(1, kind), uuid(event_id), uuid(invocation_id), numbers, commit]);
      return [entry.toString("hex"), sha256(Buffer.of(0), entry).toString("hex")];
    },
    ({ entry, leaf }) => [entry, leaf],
  );
});
