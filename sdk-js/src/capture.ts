/** Writes a payload as JSON text, as much of it as an event may carry. */
import { encodeJson, isPlain, type Plain, toPlain } from "./plain.js";
import type { Note, Redactor } from "./redact.js";

export type CaptureMode = "full" | "shape" | "none";

const PREVIEW_BYTES = 4096; // kept of a payload that is too long
const SHAPE_MEMBERS = 50; // items kept of a list: enough to show what it contains

/** The capture rule of one tool. `maxBytes` limits a payload, in bytes of JSON. */
export class Capture {
  constructor(
    readonly mode: CaptureMode,
    readonly redactor: Redactor | undefined,
    readonly maxBytes: number,
  ) {}

  /** Writes a payload as JSON and adds a note for each removal; `plain`: whether it `isPlain`. Never throws. */
  encode(value: unknown, path: string, notes: Note[], plain?: boolean): string {
    if (this.mode === "none") {
      notes.push({ path, reason: "not captured" });
      return "null";
    }
    try {
      return this.#cut(this.#written(value, path, notes, plain), path, notes);
    } catch (error) {
      notes.push({ path, reason: `not JSON: ${error instanceof Error ? error.name : "Error"}` });
      return "null";
    }
  }

  #written(value: unknown, path: string, notes: Note[], known?: boolean): string {
    let payload = value;
    if (this.mode === "shape") {
      notes.push({ path, reason: "shape only" });
      payload = shapeOf(toPlain(value));
    }
    const isQuick = this.mode === "shape" ? isPlain(payload) : (known ?? isPlain(payload));
    if (!isQuick) payload = toPlain(payload);
    const text = JSON.stringify(payload);
    if (!this.redactor || (isQuick && this.redactor.hasNoTrace(text))) return text;
    // The limit of length comes last: a text that was cut can no longer be searched for secrets.
    const [cleaned, removed] = this.redactor.clean(payload, path);
    notes.push(...removed);
    return JSON.stringify(cleaned);
  }

  #cut(text: string, path: string, notes: Note[]): string {
    if (text.length * 3 <= this.maxBytes) return text;
    const bytes = Buffer.byteLength(text);
    if (bytes <= this.maxBytes) return text;
    notes.push({ path, reason: `too long: ${bytes} bytes` });
    const start = Buffer.from(text.slice(0, PREVIEW_BYTES)).subarray(0, PREVIEW_BYTES).toString();
    return JSON.stringify(start.replace(/\ufffd$/, ""));
  }

  /** A small object of ours without secrets, such as an error; the message stays with `full` only. */
  clean(value: Record<string, unknown>, path: string, notes: Note[]): Record<string, unknown> {
    if (!this.redactor || this.redactor.hasNoTrace(encodeJson(value))) return value;
    const [cleaned, removed] = this.redactor.clean(value, path);
    notes.push(...removed);
    return cleaned as Record<string, unknown>;
  }
}

/** Replaces every value by the name of its JSON type. Members keep their names. */
function shapeOf(value: Plain): Plain {
  if (Array.isArray(value)) return value.slice(0, SHAPE_MEMBERS).map(shapeOf);
  if (value === null) return "null";
  if (typeof value === "object") {
    const shape = Object.create(null) as Record<string, Plain>;
    for (const [name, member] of Object.entries(value)) shape[name] = shapeOf(member);
    return shape;
  }
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value;
}
