/**
 * The canonical text of a tool call, and the call id made from it. Both are the bytes of the ADK's
 * and of the Python SDK, so the same call has the same id in every language.
 */
import { hash } from "node:crypto";

/**
 * Writes a JSON value with sorted members and without white space.
 *
 * Members are sorted by UTF-16 code units, numbers are written as JavaScript does, NaN and
 * infinities as `null`. Throws TypeError for values that JSON cannot hold, and for cycles.
 */
export function canonicalStringify(value: unknown): string {
  return write(value, new Set());
}

/** Computes the content-based id of a call: SHA-256 of `{args, tool}` in lower-case hexadecimal. */
export function computeCallId(tool: string, args: unknown): string {
  return sha256(canonicalStringify({ args, tool }));
}

/** SHA-256 of a text's UTF-8 bytes in lower-case hexadecimal. */
export function sha256(text: string): string {
  return hash("sha256", text);
}

function write(value: unknown, ancestors: Set<object>): string {
  switch (typeof value) {
    case "string":
    case "boolean":
    case "number":
      return JSON.stringify(value);
    case "object":
      return value === null ? "null" : writeContainer(value, ancestors);
    default:
      throw new TypeError(`${typeof value} has no canonical form: use plain JSON values`);
  }
}

function writeContainer(value: object, ancestors: Set<object>): string {
  if (ancestors.has(value)) throw new TypeError("a value that contains itself has no canonical form");
  if (!Array.isArray(value) && !isPlainObject(value)) {
    throw new TypeError(`${nameOf(value)} has no canonical form: use plain JSON values`);
  }
  ancestors.add(value);
  // This runs in every call, so it makes no lists of parts.
  let text = "";
  if (Array.isArray(value)) {
    for (const member of value as unknown[]) text += `${text === "" ? "" : ","}${write(member, ancestors)}`;
    text = `[${text}]`;
  } else {
    // In the order of code units: what the default order compares.
    for (const name of Object.keys(value).sort()) {
      text += `${text === "" ? "" : ","}${JSON.stringify(name)}:${write(value[name], ancestors)}`;
    }
    text = `{${text}}`;
  }
  ancestors.delete(value);
  return text;
}

/** Whether an object is of no class: `{}`, or without prototype. */
export function isPlainObject(value: object): value is Record<string, unknown> {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null || isPlainElsewhere(prototype as object);
}

/** The prototype of an object of another realm, such as a `vm` context or a test runner's. */
function isPlainElsewhere(prototype: object): boolean {
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, "isPrototypeOf");
}

/** The name of a value's class. */
export function nameOf(value: object): string {
  const made: unknown = (value as { constructor?: unknown }).constructor;
  return typeof made === "function" && made.name !== "" ? made.name : "Object";
}
