/** Turns any value into JSON. What JSON cannot hold becomes text, and nothing is consumed. */
import { isPlainObject, nameOf } from "./canonical.js";

/** Deeper values are not looked at by the quick check. */
const QUICK_DEPTH_MAX = 56;

export type Plain = null | boolean | number | string | Plain[] | { [name: string]: Plain };

/** A placeholder for an object that JSON cannot hold: its type, as its text may be secret. */
export function opaque(value: unknown): string {
  if (typeof value === "object" && value !== null) return `<${nameOf(value)}>`;
  return `<${typeof value}>`;
}

/**
 * Whether `JSON.stringify` writes a value as it is, without calling anything of it. False also for a value that
 * is deeper than 56 levels, or cannot be read.
 */
export function isPlain(value: unknown): boolean {
  try {
    return isPlainWithin(value, QUICK_DEPTH_MAX);
  } catch {
    return false;
  }
}

function isPlainWithin(value: unknown, left: number): boolean {
  switch (typeof value) {
    case "string":
    case "boolean":
      return true;
    case "number":
      return Number.isFinite(value);
    case "object":
      break;
    default:
      return false;
  }
  if (value === null) return true;
  if (left === 0 || (value as { toJSON?: unknown }).toJSON !== undefined) return false;
  if (Array.isArray(value)) {
    for (const member of value as unknown[]) {
      if (typeof member !== "string" && !isPlainWithin(member, left - 1)) return false;
    }
    return true;
  }
  if (!isPlainObject(value)) return false;
  for (const name in value) {
    const member = value[name];
    if (typeof member === "string" || member === undefined) continue; // JSON leaves out what is undefined
    if (!isPlainWithin(member, left - 1)) return false;
  }
  return true;
}

/** Writes any value as JSON text. Throws for a cycle, and what a getter or `toJSON` throws. */
export function encodeJson(value: unknown): string {
  return JSON.stringify(isPlain(value) ? value : toPlain(value));
}

/**
 * A copy of any value as plain JSON: bytes become base64, NaN becomes `"NaN"`, a function, a stream
 * or an iterator becomes its type in angle brackets. Throws TypeError for a cycle.
 */
export function toPlain(value: unknown, ancestors: Set<object> = new Set<object>()): Plain {
  switch (typeof value) {
    case "string":
    case "boolean":
      return value;
    case "number":
      return Number.isFinite(value) ? value : String(value);
    case "bigint":
      return Number.isSafeInteger(Number(value)) ? Number(value) : value.toString();
    case "undefined":
      return null;
    case "function":
    case "symbol":
      return opaque(value);
    case "object":
      return value === null ? null : plainObject(value, ancestors);
  }
}

function plainObject(value: object, ancestors: Set<object>): Plain {
  if (ancestors.has(value)) throw new TypeError("a value that contains itself is not JSON");
  if (value instanceof Uint8Array) {
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64");
  }
  if (value instanceof ArrayBuffer) return Buffer.from(value).toString("base64");
  ancestors.add(value);
  try {
    const own = (value as { toJSON?: unknown }).toJSON;
    if (typeof own === "function") {
      const written: unknown = own.call(value, "");
      return written === value ? opaque(value) : toPlain(written, ancestors);
    }
    return plainMembers(value, ancestors);
  } finally {
    ancestors.delete(value);
  }
}

function plainMembers(value: object, ancestors: Set<object>): Plain {
  if (Array.isArray(value)) return value.map((member) => toPlain(member, ancestors));
  if (value instanceof Set) return [...value].map((member) => toPlain(member, ancestors));
  // Objects without prototype: a member named `__proto__` is a member.
  const plain = Object.create(null) as Record<string, Plain>;
  if (value instanceof Map) {
    for (const [name, member] of value) plain[String(name)] = toPlain(member, ancestors);
    return plain;
  }
  if (value instanceof Error) {
    plain["name"] = value.name;
    plain["message"] = value.message;
  } else if (!isData(value)) return opaque(value);
  for (const [name, member] of Object.entries(value)) {
    if (member !== undefined) plain[name] = toPlain(member, ancestors);
  }
  return plain;
}

/** Whether an object is data, not something to read from, wait for or call. */
function isData(value: object): boolean {
  if (isPlainObject(value)) return true;
  const members = value as Record<PropertyKey, unknown>;
  return ![Symbol.asyncIterator, Symbol.iterator, "next", "then", "pipe", "getReader"].some(
    (name) => typeof members[name] === "function",
  ) && !(value instanceof WeakMap) && !(value instanceof WeakSet) && !(value instanceof RegExp);
}
