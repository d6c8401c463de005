/** Writes an event that is given by its members. `recording` writes those of wrapped tools, faster. */
import type { Capture } from "./capture.js";
import { encodeJson } from "./plain.js";
import type { Note } from "./redact.js";
import { uuid7 } from "./uuid.js";

/** An event of the wire contract (docs/events.md), in snake case. */
export type WireEvent = { type: "toolExecutionStart" | "toolExecutionEnd"; tool_name: string } & Record<string, unknown>;

const NOT_PLAIN = new Set(["type", "call_state", "args", "output", "guard", "removed", "auth", "producer_id", "producer_seq"]);

/** The event as JSON text without its closing brace; its payloads as `capture` keeps them. */
export function emittedText(event: WireEvent, capture: Capture): string {
  const notes: Note[] = [];
  const head: Record<string, unknown> = { type: event.type };
  // First, so that the shipper knows the line: an older server takes an interim event for the end.
  if (event["call_state"] !== undefined) head["call_state"] = event["call_state"];
  for (const [name, value] of Object.entries(event)) if (!NOT_PLAIN.has(name)) head[name] = value;
  head["event_id"] ??= uuid7();
  let text = encodeJson(head).slice(0, -1);
  for (const name of ["args", "output", "guard"]) {
    if (event[name] !== undefined) text += `,"${name}":${capture.encode(event[name], `$.${name}`, notes)}`;
  }
  return notes.length > 0 ? `${text},"removed":${JSON.stringify(notes)}` : text;
}
