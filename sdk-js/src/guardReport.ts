/**
 * The verdict of tool-output-guard in the form of the wire contract, without secrets. A verdict
 * quotes the output: what redaction removes from the output is removed here, too.
 */
import type { Capture } from "./capture.js";
import { encodeJson } from "./plain.js";
import type { Note } from "./redact.js";

const VIOLATIONS_MAX = 1000; // in one guard report
const RECEIVED = "$.guard.received";
const OUTPUT_DATA = "$.output.data";
const VALUES = ["receivedValue", "coercedValue"] as const;
const TEXTS = ["received", "message", "llmMessage"] as const;

/** A violation as tool-output-guard reports it. */
export interface Violation {
  path: string;
  severity?: string;
  code: string;
  expected?: string;
  received?: string;
  message?: string;
  llmMessage?: string;
  receivedValue?: unknown;
  coercedValue?: unknown;
}

export type GuardOutcome = "passed" | "failed" | "coerced" | "stripped" | "fallback" | "error-result";

/** `received` is what the tool returned; `error` what the guard threw. */
export interface GuardVerdict {
  strategy: string;
  outcome: GuardOutcome;
  violations: Violation[];
  received: unknown;
  error: unknown;
}

/** Writes a verdict. Removals are added to `notes`. */
export function guardText(verdict: GuardVerdict, capture: Capture, notes: Note[]): string {
  const own: Note[] = [];
  const kept = verdict.violations.slice(0, VIOLATIONS_MAX).map((each, at) => cleaned(each, at, capture, own));
  let received = "";
  const first = own[0];
  if (verdict.outcome !== "passed" && first) {
    // A JSON text can hide a secret that appears only after coercion.
    own.push({ path: RECEIVED, reason: first.reason });
  } else if (verdict.outcome !== "passed") {
    const notesOfReceived: Note[] = [];
    received = `,"received":${capture.encode(verdict.received, OUTPUT_DATA, notesOfReceived)}`;
    for (const { path, reason } of notesOfReceived) {
      own.push({ path: RECEIVED + path.slice(OUTPUT_DATA.length), reason });
    }
  }
  notes.push(...own);
  if (verdict.violations.length > VIOLATIONS_MAX) {
    notes.push({ path: "$.guard.violations", reason: `${verdict.violations.length} violations, the first are kept` });
  }
  const { strategy, outcome } = verdict;
  return `{"strategy":${JSON.stringify(strategy)},"outcome":"${outcome}","violations":${encodeJson(kept)}${received}}`;
}

/** A violation without the received values that are secret. */
function cleaned(violation: Violation, at: number, capture: Capture, notes: Note[]): Record<string, unknown> {
  const members: Record<string, unknown> = { ...violation };
  const place = `$.guard.violations[${at}]`;
  const { redactor } = capture;
  let reason = capture.mode === "full" ? undefined : "not captured";
  if (reason === undefined && redactor) {
    const path = OUTPUT_DATA + violation.path.slice(1); // what the user's paths match
    reason = redactor.reasonAt(path);
    for (const name of VALUES) {
      if (name in members) reason ??= redactor.clean(members[name], path)[1][0]?.reason;
    }
  }
  if (reason === undefined) return capture.clean(members, place, notes);
  // For enums, constants and patterns these texts quote the value.
  for (const name of VALUES) Reflect.deleteProperty(members, name);
  for (const name of TEXTS) if (name in members) members[name] = "";
  notes.push({ path: place, reason });
  return members;
}
