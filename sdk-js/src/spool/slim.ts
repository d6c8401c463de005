/**
 * Reduces an event to what stays when there is no room for its payloads: its place, times, outcome,
 * error type, guard verdict and numbering. A note says what was removed.
 */
const META_KEPT = ["took_ms", "token_usage", "cache_hit"];
const VIOLATION_KEPT = ["path", "severity", "code", "expected"];

type Members = Record<string, unknown>;

/** Removes the payloads from one event's JSON text. What is no event stays as it is. */
export function slimLine(line: Buffer, reason: string): Buffer {
  let event: unknown;
  try {
    event = JSON.parse(line.toString());
  } catch {
    return line;
  }
  if (!isObject(event) || event["type"] === "gap") return line;
  const { removed: before, producer_id: producer, producer_seq: seq, ...members } = event;
  const removed: unknown[] = Array.isArray(before) ? before.filter(isObject) : [];
  if ("args" in members) {
    members["args"] = null;
    removed.push({ path: "$.args", reason });
  }
  if ("output" in members) {
    members["output"] = slimOutput(members["output"]);
    removed.push({ path: "$.output", reason });
  }
  if (members["type"] === "toolCallDecision") {
    if (members["reason"] !== undefined) {
      delete members["reason"];
      removed.push({ path: "$.reason", reason });
    }
    members["violations"] = slimViolations(members["violations"]);
  }
  if (isObject(members["guard"])) {
    const { received, ...guard } = members["guard"];
    if (received !== undefined) removed.push({ path: "$.guard.received", reason });
    members["guard"] = { ...guard, violations: slimViolations(guard["violations"]) };
  }
  members["removed"] = removed;
  // The numbers are at the end of a line, where the spool looks for them.
  if (producer !== undefined) members["producer_id"] = producer;
  if (seq !== undefined) members["producer_seq"] = seq;
  return Buffer.from(JSON.stringify(members));
}

function isObject(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function slimOutput(output: unknown): Members | null {
  if (!isObject(output) || !("status" in output)) return null;
  const kept: Members = { status: output["status"] };
  if (isObject(output["error"])) kept["error"] = { type: output["error"]["type"] ?? null, message: "" };
  if (isObject(output["meta"])) kept["meta"] = picked(output["meta"], META_KEPT);
  return kept;
}

function slimViolations(violations: unknown): unknown[] {
  if (!Array.isArray(violations)) return [];
  return violations.map((each) => (isObject(each) ? picked(each, VIOLATION_KEPT) : (each as unknown)));
}

function picked(members: Members, names: string[]): Members {
  return Object.fromEntries(Object.entries(members).filter(([name]) => names.includes(name)));
}
