/**
 * Turns one call of a tool into its two event lines. This code runs in every call: JSON that two
 * lines or many calls share is written once.
 */
import { callIdOfPlain, computeCallId } from "./canonical.js";
import type { Capture } from "./capture.js";
import { instantText, nowUs } from "./clock.js";
import { describeFailure } from "./failures.js";
import { type GuardVerdict, guardText } from "./guardReport.js";
import { type CallState, readMcpResult } from "./mcpResults.js";
import { encodeJson, isPlain, toPlain } from "./plain.js";
import type { Note } from "./redact.js";
import { currentSpan, type Scope, scopeOfCall, scopes, traceIdIn } from "./scope.js";
import { uuid7 } from "./uuid.js";

const MESSAGE_MAX_CHARACTERS = 8192;
const OUTPUT_DATA = "$.output.data";
const FIGURES = ["took_ms", "token_usage", "cache_hit", "source_counts", "attempt"];

/** Keeps one event, given as JSON text without its closing brace. False if it could not. */
export type Append = (head: string) => boolean;

/** What all calls of one tool share. `text` holds it as JSON members, each with a comma. */
export class ToolSpec {
  readonly text: string;

  constructor(
    readonly name: string,
    readonly capture: Capture,
    version?: string,
    timeoutsMs?: number,
  ) {
    const members = {
      tool_name: name,
      ...(version !== undefined && { tool_version: version }),
      ...(timeoutsMs !== undefined && { timeouts_ms: timeoutsMs }),
    };
    this.text = `${JSON.stringify(members).slice(1, -1)},`;
  }
}

/** One execution of a tool. Its public members may be set by the tool, until it ends. */
export class Call {
  readonly id = uuid7();
  readonly traceId: string;
  /** The OpenTelemetry span around the call, as a traceparent. */
  readonly span: string | undefined;
  /** The number of this attempt, from 1. */
  attempt: number | undefined;
  cacheHit: boolean | undefined;
  /** What is known of the MCP client and server: `client`, `server`, `protocol_version`. */
  mcp: Record<string, unknown> | undefined;
  /** Decisions made. */
  routing: Record<string, unknown> | undefined;
  /** The number of results by source. */
  sourceCounts: Record<string, number> | undefined;
  /** Counts by kind, such as `{ prompt: 812, completion: 64 }`. */
  tokenUsage: Record<string, number> | undefined;
  /** The verdict of an output guard, while the tool runs. */
  verdict: GuardVerdict | undefined;
  readonly scope: Scope;
  readonly #outer: Scope | undefined;
  readonly #spec: ToolSpec;
  readonly #append: Append | undefined;
  readonly #complain: (error: unknown) => void;
  #isOpen = false;
  #isKept = false;
  #shared = "";
  #startedUs = 0;
  #startedAt = 0;

  constructor(spec: ToolSpec, append: Append | undefined, complain: (error: unknown) => void) {
    this.#outer = scopes.getStore();
    this.span = currentSpan() ?? this.#outer?.cause;
    this.#spec = spec;
    this.#append = append;
    this.#complain = complain;
    this.traceId = this.#outer?.traceId ?? traceIdIn(this.span);
    this.scope = scopeOfCall(this.#outer, this);
  }

  /** Records that the tool is about to run. Returns false if a spool could not keep the event. */
  start(args: unknown): boolean {
    if (!this.#append) return true;
    try {
      const { capture, name, text } = this.#spec;
      const outer = this.#outer;
      const plain = isPlain(args);
      const callId = callIdOf(name, args, plain);
      this.#startedUs = nowUs();
      const parent = outer?.parentId === undefined ? "" : `"parent_invocation_id":"${outer.parentId}",`;
      this.#shared =
        `"invocation_id":"${this.id}",${(outer ?? this.scope).text}${parent}${text}` +
        `"call_id":"${callId}","started_at":"${instantText(this.#startedUs)}"`;
      const notes: Note[] = [];
      const encoded = capture.encode(args, "$.args", notes, plain);
      const span = this.span === undefined || this.span === outer?.span ? "" : `,"traceparent":"${this.span}"`;
      const kept = this.#append(
        `{"type":"toolExecutionStart","event_id":"${uuid7()}",${this.#shared}${span},"args":${encoded}${notesText(notes)}`,
      );
      this.#isOpen = true; // also if the spool was full: it may have room for the end
      this.#isKept = kept;
      this.#startedAt = performance.now();
      return kept;
    } catch (error) {
      this.#complain(error);
      return false;
    }
  }

  /** Whether its start is in the spool. */
  get isKept(): boolean {
    return this.#isKept;
  }

  /** Records that the tool returned `result`, an envelope or plain data. Never throws. */
  finish(result: unknown): void {
    this.#close((notes, tookMs) => {
      const envelope = asEnvelope(result) ?? { status: "ok", data: result };
      const failed = envelope.status === "error";
      // The server knows an envelope's failure; `is_error` says whether the tool threw.
      this.#end(tookMs, false, this.#output(envelope, failed, tookMs, notes), notes);
    });
  }

  /**
   * Records the result of an MCP tool, a `CallToolResult`. One that reports an error is a failure. After
   * one that asks for input or returns a task the call has not ended. Never throws.
   */
  finishMcp(result: unknown): void {
    this.#close((notes, tookMs) => {
      const document = toPlain(result);
      const { isError, message, state } = readMcpResult(document);
      this.#isOpen = state === "waiting" || state === "working";
      const error = { type: "tool_error", message, details: { result: document } };
      const envelope = isError ? { status: "error", error } : { status: "ok", data: document };
      const output = this.#output(envelope, isError, tookMs, notes);
      this.#end(tookMs, isError, output, notes, '"output_type":"CallToolResult",', stateText(state));
    });
  }

  /** Records that the call waits for input, or works as a task: it has not ended. Never throws. */
  report(state: "waiting" | "working"): void {
    this.#close((notes, tookMs) => {
      this.#isOpen = true;
      this.#end(tookMs, false, "null", notes, "", stateText(state));
    });
  }

  /** Records that the tool threw. Never throws. */
  fail(thrown: unknown): void {
    this.#close((notes, tookMs) => {
      const failure = describeFailure(thrown);
      if (this.verdict && this.verdict.error === thrown) {
        // The error's own text quotes the output. The violations quote it redacted.
        const places = new Set(this.verdict.violations.map((each) => each.path));
        failure.message = `The output breaks its schema at ${[...places].join(", ")}`;
      }
      const output = this.#output({ status: "error", error: { ...failure } }, true, tookMs, notes);
      this.#end(tookMs, true, output, notes, "", stateText(failure.code === "CANCELLED" ? "cancelled" : undefined));
    });
  }

  #close(work: (notes: Note[], tookMs: number) => void): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    try {
      work([], Math.max(performance.now() - this.#startedAt, 0));
    } catch (error) {
      this.#complain(error);
    }
  }

  #end(tookMs: number, isError: boolean, output: string, notes: Note[], kind = "", state = ""): void {
    // Not the wall clock: if it was set back meanwhile, the call would end before its start.
    const endedAt = instantText(this.#startedUs + Math.round(tookMs * 1000));
    const { capture } = this.#spec;
    const guard = this.verdict ? `,"guard":${guardText(this.verdict, capture, notes)}` : "";
    const mcp = this.mcp ? `"mcp":${encodeJson(capture.clean(this.mcp, "$.mcp", notes))},` : "";
    this.#append?.(
      `{"type":"toolExecutionEnd",${state}"event_id":"${uuid7()}",${this.#shared},"ended_at":"${endedAt}",` +
        `"duration_ms":${tookMs.toFixed(3)},"is_error":${String(isError)},${kind}${mcp}` +
        `"output":${output}${guard}${notesText(notes)}`,
    );
  }

  #output(envelope: Envelope, failed: boolean, tookMs: number, notes: Note[]): string {
    const { capture } = this.#spec;
    const meta = this.#meta(envelope, tookMs, notes);
    if (!failed) {
      return `{"status":"ok","data":${capture.encode(envelope.data, OUTPUT_DATA, notes)},"meta":${meta}}`;
    }
    let detail: Record<string, unknown> = { ...envelope.error };
    if (this.attempt !== undefined) detail["attempt"] ??= this.attempt;
    if (capture.mode === "full") detail = capture.clean(detail, "$.output.error", notes);
    else {
      delete detail["details"];
      notes.push({ path: "$.output.error.message", reason: "not captured" });
    }
    const message = capture.mode === "full" ? textOf(detail["message"]) : "";
    detail["message"] = message.slice(0, MESSAGE_MAX_CHARACTERS);
    return `{"status":"error","error":${encodeJson(detail)},"meta":${meta}}`;
  }

  #meta(envelope: Envelope, tookMs: number, notes: Note[]): string {
    const took = Math.trunc(tookMs);
    const { tokenUsage, cacheHit, sourceCounts, routing, attempt } = this;
    const figure = tokenUsage ?? sourceCounts ?? routing ?? cacheHit ?? attempt ?? envelope.meta;
    if (figure === undefined) return `{"took_ms":${took}}`;
    const own = { token_usage: tokenUsage, cache_hit: cacheHit, source_counts: sourceCounts, routing, attempt };
    const given = Object.entries({ ...own, ...envelope.meta }).filter(([, value]) => (value ?? undefined) !== undefined);
    const meta: Record<string, unknown> = { took_ms: took, ...Object.fromEntries(given) };
    const { capture } = this.#spec;
    if (capture.mode === "full") return encodeJson(capture.clean(meta, "$.output.meta", notes));
    return encodeJson(Object.fromEntries(Object.entries(meta).filter(([name]) => FIGURES.includes(name))));
  }
}

interface Envelope {
  status: string;
  data?: unknown;
  error?: Record<string, unknown>;
  meta?: Record<string, unknown>;
}

/** The result as an envelope of the AI Core's contracts, if it is one. */
function asEnvelope(result: unknown): Envelope | undefined {
  if (typeof result !== "object" || result === null) return undefined;
  const { status, error, meta } = result as Record<string, unknown>;
  const isEnvelope = (status === "ok" && "data" in result) || (status === "error" && typeof error === "object" && error !== null);
  if (!isEnvelope) return undefined;
  const hasMeta = typeof meta === "object" && meta !== null && !Array.isArray(meta);
  return { ...(result as Envelope), meta: hasMeta ? (meta as Record<string, unknown>) : {} };
}

/** The content-based call id of any arguments: those that are no JSON count as their JSON form. */
function callIdOf(tool: string, args: unknown, plain: boolean): string {
  try {
    return (plain ? callIdOfPlain : computeCallId)(tool, args);
  } catch {
    try {
      return computeCallId(tool, toPlain(args));
    } catch {
      return computeCallId(tool, null);
    }
  }
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : encodeJson(value ?? "");
}

function stateText(state: CallState | undefined): string {
  return state === undefined ? "" : `"call_state":"${state}",`;
}

function notesText(notes: Note[]): string {
  return notes.length > 0 ? `,"removed":${JSON.stringify(notes)}` : "";
}
