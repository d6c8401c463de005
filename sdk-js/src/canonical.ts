/**
 * The canonical text of a tool call, and the call id made from it. Both are the bytes of the ADK's
 * and of the Python SDK, so the same call has the same id in every language.
 */
import { hash } from "node:crypto";

const FEW_NAMES = 12;
const SHORT_TEXT = 32; // characters
const NAMES_REMEMBERED = 1024;
const NAME_REMEMBERED_MAX = 64; // characters
const quotedNames = new Map<string, string>();

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

/** The same id, faster, of arguments that are plain data (`isPlain`): members that are undefined count as absent. */
export function callIdOfPlain(tool: string, args: unknown): string {
  return sha256(`{"args":${writePlain(args)},"tool":${JSON.stringify(tool)}}`);
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

function writePlain(value: unknown): string {
  if (typeof value === "string") return quoted(value);
  if (typeof value !== "object" || value === null) return String(value);
  let text = "";
  if (Array.isArray(value)) {
    for (const member of value as unknown[]) text += (text === "" ? "" : ",") + writePlain(member);
    return `[${text}]`;
  }
  const members = value as Record<string, unknown>;
  for (const name of sortedNames(members)) {
    const member = members[name];
    if (member !== undefined) text += (text === "" ? "" : ",") + quotedName(name) + writePlain(member);
  }
  return `{${text}}`;
}

/** The names of an object's members, in the order of their code units. */
function sortedNames(members: object): string[] {
  const names = Object.keys(members);
  if (names.length > FEW_NAMES) return names.sort();
  // Few are sorted by insertion in a fraction of the time.
  for (let at = 1; at < names.length; at++) {
    const name = names[at] ?? "";
    let place = at;
    for (let before = names[place - 1] ?? ""; place > 0 && before > name; before = names[place - 1] ?? "") {
      names[place--] = before;
    }
    names[place] = name;
  }
  return names;
}

/** A text as JSON. Few short texts need `JSON.stringify`, which takes as long as all of this for a word. */
function quoted(text: string): string {
  if (text.length > SHORT_TEXT) return JSON.stringify(text);
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code < 32 || code === 34 || code === 92 || code > 126) return JSON.stringify(text);
  }
  return `"${text}"`;
}

/** A name as JSON with its colon. Tools are called with the same names again and again. */
function quotedName(name: string): string {
  const known = quotedNames.get(name);
  if (known !== undefined) return known;
  if (quotedNames.size >= NAMES_REMEMBERED) quotedNames.clear();
  const text = `${JSON.stringify(name)}:`;
  if (name.length <= NAME_REMEMBERED_MAX) quotedNames.set(name, text);
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
