/** What the server acknowledged last, in a file of the root. `tooltrail verify` compares it. */
import * as fs from "node:fs";
import { join } from "node:path";
import { randomHex } from "../uuid.js";

const ACKNOWLEDGED = "acknowledged.json";
const NO_ENTRY = Buffer.from('{"type":"toolDefinitions"');
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export interface Acknowledgement {
  at: string;
  batch_id: string;
  first_index: number;
  size: number;
  event_ids: string[];
}

/** What is kept of an answer with status 200; undefined if it does not say where the events are. */
export function acknowledgement(
  answer: Record<string, unknown>,
  batchId: string,
  lines: Buffer[],
): Acknowledgement | undefined {
  const ledger = answer["ledger"] as Record<string, unknown> | null | undefined;
  const first = ledger?.["first_index"];
  const size = ledger?.["size"];
  if (typeof first !== "number" || typeof size !== "number" || !(first >= 0 && first < size)) return;
  const rejected = Array.isArray(answer["rejected"]) ? answer["rejected"] : [];
  const refused = new Set(rejected.map((each) => (each as { line?: unknown } | null)?.line));
  const ids = lines
    .filter((line, at) => !refused.has(at + 1) && !line.subarray(0, NO_ENTRY.length).equals(NO_ENTRY))
    .map(eventId);
  return {
    at: new Date().toISOString(),
    batch_id: batchId,
    first_index: first,
    size,
    event_ids: ids.filter((id) => id !== undefined),
  };
}

/** Writes it into the root unless a larger ledger is there. Throws if the disk does not let it. */
export function keepAcknowledged(root: string, kept: Acknowledgement): void {
  const path = join(root, ACKNOWLEDGED);
  if (sizeIn(path) > kept.size) return;
  const draft = join(root, `.${ACKNOWLEDGED}.${randomHex(8)}`);
  try {
    fs.writeFileSync(draft, JSON.stringify(kept));
    fs.renameSync(draft, path);
  } finally {
    fs.rmSync(draft, { force: true });
  }
}

function sizeIn(path: string): number {
  try {
    const { size } = JSON.parse(fs.readFileSync(path, "utf8")) as { size?: unknown };
    return typeof size === "number" ? size : -1;
  } catch {
    return -1;
  }
}

function eventId(line: Buffer): string | undefined {
  try {
    const { event_id: id } = JSON.parse(line.toString()) as { event_id?: unknown };
    return typeof id === "string" && UUID.test(id) ? id : undefined;
  } catch {
    return undefined;
  }
}
