/** The current time in microseconds, and its text in events. */

let baseUs = Date.now() * 1000;
let baseAt = performance.now();
const STEP_US = 2000; // Date.now() has milliseconds: a larger difference is a clock that was set

/** Microseconds since 1970, of the system's clock. */
export function nowUs(): number {
  const us = Math.round(baseUs + (performance.now() - baseAt) * 1000);
  const wall = Date.now() * 1000;
  if (Math.abs(us - wall) <= STEP_US) return us;
  baseUs = wall;
  baseAt = performance.now();
  return wall;
}

let second = NaN;
let secondText = "";

/** Writes microseconds since 1970 as RFC 3339 in UTC. Most calls fall into the second of the last. */
export function instantText(us: number): string {
  const began = Math.floor(us / 1_000_000);
  if (began !== second) {
    second = began;
    secondText = new Date(began * 1000).toISOString().slice(0, 19);
  }
  return `${secondText}.${String(us - began * 1_000_000).padStart(6, "0")}+00:00`;
}
