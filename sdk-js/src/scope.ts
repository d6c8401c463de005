/**
 * Which trace, context and call the running code belongs to. A scope follows the code through
 * `await`, timers and events, by `AsyncLocalStorage`.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { encodeJson } from "./plain.js";
import type { Call } from "./recording.js";
import { randomHex } from "./uuid.js";

/** Characters of trace, turn, run … ids. */
export const ID_MAX_LENGTH = 128;
const TEXTS = {
  turnId: "turn_id", runId: "run_id", conversation: "run_id", ingestionRunId: "ingestion_run_id",
  workflowId: "workflow_id", collectionId: "collection_id", documentId: "document_id",
  documentVersionId: "document_version_id", caseId: "case_id", locale: "locale", safetyMode: "safety_mode",
  toolCallId: "tool_call_id", idempotencyKey: "idempotency_key",
} as const;
const COUNTS = { timeoutsMs: "timeouts_ms", budgetTokens: "budget_tokens" } as const;
const PARTS = {
  agent: "agent", agentVersion: "agent_version", model: "model", provider: "provider",
  principal: "principal", environment: "environment", service: "service", serviceVersion: "service_version",
} as const;
/** Not inherited by calls inside the call. */
const OF_ONE_CALL = ["tool_call_id", "model_usage", "idempotency_key", "timeouts_ms"];
/** Parts of the context that another agent does not inherit. */
const OF_AGENT = ["agent_version", "model", "provider"];

/** What the calls of a trace have in common. All of it is optional, and inherited inside. */
export type TraceContext = Partial<Record<keyof typeof TEXTS | keyof typeof PARTS, string | undefined>> & Partial<Record<keyof typeof COUNTS, number | undefined>> & {
  /** Free text, at most 128 characters. Default: OpenTelemetry's current trace, else a new id. */
  traceId?: string | undefined;
  parentInvocationId?: string | undefined;
  /** The OpenTelemetry span of another process that caused the calls, in the form of W3C Trace Context. */
  traceparent?: string | undefined;
  /** The tokens of the model's answer that asked for the calls. */
  modelUsage?: { prompt: number; completion: number } | undefined;
  /** Further members of the event's `context`. */
  context?: Record<string, string> | undefined;
};

/** `text` holds trace and members as JSON members, each with a comma. */
export interface Scope {
  readonly traceId: string;
  readonly members: Readonly<Record<string, unknown>>;
  readonly text: string;
  readonly parentId: string | undefined;
  readonly call: Call | undefined;
  /** The OpenTelemetry span in which the enclosing call started, as a traceparent. */
  readonly span: string | undefined;
  /** The span of another process in which the calls run, but not those inside them. */
  readonly cause?: string | undefined;
}

// One storage for all copies of this module in a process.
const KEY = Symbol.for("tooltrail.scope.1");
const held = globalThis as unknown as Record<symbol, AsyncLocalStorage<Scope> | undefined>;
export const scopes: AsyncLocalStorage<Scope> = (held[KEY] ??= new AsyncLocalStorage<Scope>());

/** Makes a scope inside the current one, which inherits its trace and context. */
export function makeScope(given: TraceContext): Scope {
  const outer = scopes.getStore();
  const members: Record<string, unknown> = { ...(outer?.members ?? deployed()) };
  const parts: Record<string, string> = {};
  for (const [name, text] of Object.entries(given.context ?? {})) parts[name] = idText(text);
  for (const [name, value] of Object.entries(given as Record<string, unknown>)) {
    if (value === undefined || value === null || value === "") continue;
    if (isKey(PARTS, name)) parts[PARTS[name]] = idText(value);
    else if (isKey(COUNTS, name)) members[COUNTS[name]] = value;
    else if (isKey(TEXTS, name)) {
      const member = TEXTS[name];
      if (member === "run_id") delete members["ingestion_run_id"];
      if (member === "ingestion_run_id") delete members["run_id"];
      members[member] = idText(value);
    } else if (name === "modelUsage") members["model_usage"] = value;
  }
  if (Object.keys(parts).length > 0) {
    const around = members["context"] as Record<string, string> | undefined;
    members["context"] = contextInside(around ?? {}, parts);
  }
  const wanted = given.traceId ? idText(given.traceId) : undefined;
  const isSame = outer !== undefined && (wanted === undefined || wanted === outer.traceId);
  const cause = TRACEPARENT.test(given.traceparent ?? "") ? given.traceparent : undefined;
  const traceId = isSame ? outer.traceId : (wanted ?? traceIdIn(currentSpan() ?? cause));
  return {
    traceId,
    members,
    text: membersText(traceId, members),
    parentId: given.parentInvocationId ?? (isSame ? outer.parentId : undefined),
    call: isSame ? outer.call : undefined,
    span: isSame ? outer.span : undefined,
    cause,
  };
}

/** The scope inside a call: the same trace, with the call as parent. */
export function scopeOfCall(outer: Scope | undefined, call: Call): Scope {
  const { traceId, span } = call;
  if (outer && !OF_ONE_CALL.some((name) => name in outer.members)) {
    return { traceId, members: outer.members, text: outer.text, parentId: call.id, call, span };
  }
  const members = { ...(outer?.members ?? deployed()) };
  for (const name of OF_ONE_CALL) Reflect.deleteProperty(members, name);
  return { traceId, members, text: membersText(traceId, members), parentId: call.id, call, span };
}

/** The trace id of a span given as a traceparent; without one a new trace id. */
export function traceIdIn(span: string | undefined): string {
  return span === undefined ? randomHex(16) : span.slice(3, 35);
}

interface OpenTelemetry {
  context?: { active?: () => { getValue?: (key: symbol) => unknown } | undefined };
}
const OTEL = Symbol.for("opentelemetry.js.api.1");
const TRACEPARENT = /^00-(?!0+-)[0-9a-f]{32}-(?!0+-)[0-9a-f]{16}-[0-9a-f]{2}$/;
const SPAN_KEY = Symbol.for("OpenTelemetry Context Key SPAN");

/** OpenTelemetry's current span as a traceparent, if the host uses OpenTelemetry. */
export function currentSpan(): string | undefined {
  const otel = (globalThis as { [OTEL]?: OpenTelemetry })[OTEL];
  if (!otel) return undefined;
  try {
    const span = otel.context?.active?.()?.getValue?.(SPAN_KEY) as
      | { spanContext: () => { traceId: string; spanId: string; traceFlags: number } }
      | undefined;
    if (!span) return undefined;
    const { traceId, spanId, traceFlags } = span.spanContext();
    const text = `00-${traceId}-${spanId}-${(traceFlags & 0xff).toString(16).padStart(2, "0")}`;
    return TRACEPARENT.test(text) ? text : undefined;
  } catch {
    return undefined;
  }
}

let ofProcess: Readonly<Record<string, unknown>> | undefined;

/** What OpenTelemetry's environment variables say of this process: service and environment. */
function deployed(): Readonly<Record<string, unknown>> {
  if (ofProcess) return ofProcess;
  const named: Record<string, string> = {};
  for (const pair of (process.env["OTEL_RESOURCE_ATTRIBUTES"] ?? "").split(",")) {
    const [name = "", ...rest] = pair.split("=");
    const value = rest.join("=").trim();
    try {
      named[name.trim()] = decodeURIComponent(value);
    } catch {
      named[name.trim()] = value;
    }
  }
  const parts = {
    service: process.env["OTEL_SERVICE_NAME"] ?? named["service.name"],
    service_version: named["service.version"],
    environment: named["deployment.environment.name"] ?? named["deployment.environment"],
  };
  const given = Object.entries(parts).filter((part): part is [string, string] => Boolean(part[1]));
  const context = Object.fromEntries(given.map(([name, text]) => [name, idText(text)]));
  return (ofProcess = given.length > 0 ? { context } : {});
}

function contextInside(outer: Record<string, string>, parts: Record<string, string>): Record<string, string> {
  const changes = parts["agent"] !== undefined && parts["agent"] !== outer["agent"];
  const kept = Object.entries(outer).filter(([name]) => !(changes && OF_AGENT.includes(name)));
  return { ...Object.fromEntries(kept), ...parts };
}

function membersText(traceId: string, members: Readonly<Record<string, unknown>>): string {
  return `${encodeJson({ trace_id: traceId, ...members }).slice(1, -1)},`;
}

function idText(value: unknown): string {
  return String(value).slice(0, ID_MAX_LENGTH);
}

function isKey<T extends object>(names: T, name: string): name is string & keyof T {
  return Object.hasOwn(names, name);
}
