/** Makes UUIDs of version 7: ordered by time, and within a millisecond by a counter. */
import { randomFillSync } from "node:crypto";

const POOL = new Uint8Array(4096);
const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));
let at = POOL.length;
let lastMs = 0;
let counter = 0;

/** A new UUIDv7. `ms` is its time, in milliseconds since 1970. */
export function uuid7(ms: number = Date.now()): string {
  const start = take(10);
  if (ms > lastMs) {
    lastMs = ms;
    counter = (byte(start) << 2) & 0x3ff; // room to count up
  } else {
    counter += 1;
    if (counter > 0xfff) {
      counter = 0;
      lastMs += 1;
    }
  }
  const time = lastMs.toString(16).padStart(12, "0");
  const high = (0x7000 | counter).toString(16);
  const variant = hex(0x80 | (byte(start + 1) & 0x3f));
  let rest = "";
  for (let i = start + 3; i < start + 9; i++) rest += hex(byte(i));
  return `${time.slice(0, 8)}-${time.slice(8)}-${high}-${variant}${hex(byte(start + 2))}-${rest}`;
}

/** Random lower-case hexadecimal digits, two for each byte. */
export function randomHex(bytes: number): string {
  let digits = "";
  for (let start = take(bytes), i = 0; i < bytes; i++) digits += hex(byte(start + i));
  return digits;
}

/** Where in the pool so many unused random bytes begin. */
function take(bytes: number): number {
  if (at + bytes > POOL.length) {
    randomFillSync(POOL);
    at = 0;
  }
  at += bytes;
  return at - bytes;
}

function byte(index: number): number {
  return POOL[index] ?? 0;
}

function hex(value: number): string {
  return HEX[value] ?? "00";
}
