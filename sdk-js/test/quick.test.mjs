// Every call takes quick ways for small plain values. They give what the slow ways give, for random values.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";
import { bounded, SEED } from "./sampling.mjs";

const require = createRequire(import.meta.url);
const { callIdOfPlain, computeCallId } = require("../dist/canonical.js");
const { isPlain, toPlain } = require("../dist/plain.js");
const { sealBriefly, sealLine } = require("../dist/spool/lines.js");
const { Traces } = require("../dist/traces.js");
const { uuid7 } = require("../dist/uuid.js");

const ROUNDS = bounded(1000, 20_000);

/** Random numbers below a limit, the same for the same seed (mulberry32). */
function random() {
  let state = SEED;
  return (limit) => {
    state = (state + 0x6d2b79f5) | 0;
    let bits = Math.imul(state ^ (state >>> 15), 1 | state);
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits;
    return Math.floor((((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32) * limit);
  };
}

const NAMES = ["a", "b", "Z", "10", "9", "", "é", "\u{1f600}", "\uffff", "__proto__", "constructor", "a b", '"', "x".repeat(70)];
const TEXTS = ["", "plain", 'q"\\', "\n\0", "é", "\u{1f600}", "\ud800", "\u2028", "y".repeat(300)];
const NUMBERS = [0, -0, 1, -1.5, 1e21, 1e-7, 2 ** 53, 0.1];

/** Any value; with `odd`, also those that are no plain data. */
function value(below, odd, depth = 4) {
  const pick = (list) => list[below(list.length)];
  const kind = below(depth > 0 ? (odd ? 9 : 8) : 4);
  if (kind < 2) return pick(TEXTS);
  if (kind === 2) return pick(NUMBERS);
  if (kind === 3) return pick([null, true, false]);
  if (kind === 8) return pick([NaN, undefined, 5n, new Date(0), new Map([["k", 1]]), () => 1, { toJSON: () => 1 }, Buffer.from("x"), new (class A { b = 1; })()]);
  if (kind < 6) return Array.from({ length: below(5) }, () => value(below, odd, depth - 1));
  const members = below(4) === 0 ? Object.create(null) : {};
  for (let left = below(15); left > 0; left--) {
    const member = below(20) === 0 ? undefined : value(below, odd, depth - 1);
    Object.defineProperty(members, pick(NAMES), { value: member, configurable: true, enumerable: true, writable: true });
  }
  return members;
}

test("plain data has the call id that any data has, and is JSON as it is", () => {
  const below = random();
  let plain = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const args = value(below, round % 2 === 0);
    if (!isPlain(args)) continue;
    plain += 1;
    assert.equal(callIdOfPlain("t", args), computeCallId("t", toPlain(args)), `seed ${SEED}, round ${round}`);
    assert.equal(JSON.stringify(args), JSON.stringify(toPlain(args)), `seed ${SEED}, round ${round}`);
  }
  assert.ok(plain > ROUNDS / 2 && plain < ROUNDS, `${plain} of ${ROUNDS} were plain`);
});

test("what is no plain data is not taken for it", () => {
  class Own { a = 1; }
  const list = Object.assign([1], { toJSON: () => 2 });
  for (const odd of [undefined, NaN, Infinity, 1n, () => 1, Symbol("x"), new Date(), new Map(), new Own(), [undefined], list, { toJSON: 1 }]) {
    assert.equal(isPlain(odd), false);
    assert.equal(isPlain({ a: [odd] }), false);
  }
  const cycle = {};
  cycle.cycle = cycle;
  assert.equal(isPlain(cycle), false);
});

test("the quick search for traces of secrets finds what the pattern finds", () => {
  const parts = [
    "Pass", "pas", "PWD", "secret", "secre", "CREDENTIAL", "auth", "aut", "cookie", "key", "ke", "ey", "Token", "jwt", "bearer",
    "-----BEGIN", "eyJ", "AKIA", "ghp_", "ghx_", "gho", "sk-", "sk", "tt_", "t_", "\\u0000", "\\u00", "\\u1", "://", "://u:p@h", "://u:p/",
    "http://ada:hush@host/", "iban", "Iba", "42X", "42", "id", "é", "\u{1f600}", "ſ", "K", " ", "\n", "a", "b", "e", "s", "t", "u", "y", "_", "-", ":", "/", "x".repeat(50),
  ];
  const below = random();
  const kinds = [new Traces([]), new Traces(["iban", "42x"]), new Traces(["id"])];
  let found = 0;
  for (let round = 0; round < ROUNDS * 10; round++) {
    let text = "";
    for (let left = below(12); left > 0; left--) text += parts[below(below(3) === 0 ? parts.length : 60)] ?? "";
    for (const traces of kinds) {
      const isIn = traces.pattern.test(text);
      found += Number(isIn);
      assert.equal(traces.areIn(text), isIn, `seed ${SEED}: ${JSON.stringify(text)}`);
    }
  }
  assert.ok(found > 0 && found < ROUNDS * 30, `found in ${found}`);
  const long = `${"x".repeat(100_000)} password`;
  assert.deepEqual([kinds[0].areIn(long), kinds[0].areIn(long.slice(0, -1)), kinds[0].areIn(long.slice(0, 100_000))], [true, true, false]);
});

test("a line in memory that is used again has the same bytes", () => {
  const below = random();
  for (let round = 0; round < ROUNDS; round++) {
    const text = JSON.stringify(value(below, false));
    assert.deepEqual(sealBriefly(text), sealLine(text), `seed ${SEED}, round ${round}`);
  }
  for (const text of ["\ud800", "é".repeat(200_000)]) assert.deepEqual(sealBriefly(text), sealLine(text));
});

test("ids are UUIDs of version 7, each later than the last", () => {
  let last = "";
  for (let n = 0; n < 10_000; n++) {
    const id = uuid7(1_700_000_000_000 + (n >> 12));
    assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    assert.ok(id > last, `${last} before ${id}`);
    last = id;
  }
  assert.ok(Math.abs(parseInt(uuid7(Date.now() + 60_000).replaceAll("-", "").slice(0, 12), 16) - Date.now()) < 61_000);
});
