/** Makes UUIDs of version 7: ordered by time, and within a millisecond by a counter. */
import { randomFillSync } from "node:crypto";

const POOL = Buffer.allocUnsafeSlow(2048);
const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));
const DIGITS = "0123456789abcdef";
/** The pool as hexadecimal digits, of which those before `at` are used. */
let digits = "";
let at = 0;
let lastMs = 0;
let time = "";
let counter = 0;

/** A new UUIDv7. `ms` is its time, in milliseconds since 1970. */
export function uuid7(ms: number = Date.now()): string {
  const random = randomHex(10);
  if (ms > lastMs) {
    setTime(ms);
    counter = parseInt(random.slice(17), 16) & 0x3ff; // room to count up
  } else {
    counter += 1;
    if (counter > 0xfff) {
      counter = 0;
      setTime(lastMs + 1);
    }
  }
  const high = `7${DIGITS.charAt(counter >> 8)}${HEX[counter & 0xff] ?? ""}`;
  const variant = "89ab".charAt(parseInt(random.charAt(0), 16) & 3);
  return `${time}${high}-${variant}${random.slice(1, 4)}-${random.slice(4, 16)}`;
}

/** Random lower-case hexadecimal digits, two for each byte. */
export function randomHex(bytes: number): string {
  if (at + bytes * 2 > digits.length) {
    digits = randomFillSync(POOL).toString("hex");
    at = 0;
  }
  at += bytes * 2;
  return digits.slice(at - bytes * 2, at);
}

function setTime(ms: number): void {
  lastMs = ms;
  const text = ms.toString(16).padStart(12, "0");
  time = `${text.slice(0, 8)}-${text.slice(8)}-`;
}
