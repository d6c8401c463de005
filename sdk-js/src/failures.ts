/** Turns what a tool threw into the AI Core's error: its type and its message. */
import { nameOf } from "./canonical.js";

const CONNECTION_CODES = new Set([
  "ECONNREFUSED", "ECONNRESET", "ECONNABORTED", "EPIPE", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH",
  "ENETUNREACH", "ENETDOWN", "EHOSTDOWN", "EAGAIN", "UND_ERR_SOCKET",
]);
const CAUSES_MAX = 8;

export interface Failure {
  type: "TIMEOUT" | "RATE_LIMIT" | "UPSTREAM" | "VALIDATION" | "RETRYABLE" | "FATAL";
  message: string;
  code?: string;
  cause: string;
  retry_after_ms?: number;
  upstream_status?: number;
}

/**
 * Classifies what was thrown as one of the AI Core's error types: timeouts, HTTP statuses, violated
 * schemas, lost connections and aborted calls (code CANCELLED); everything else is FATAL. Never throws.
 */
export function describeFailure(thrown: unknown): Failure {
  const error = rootOf(thrown);
  const names = namesOf(error);
  const isCancelled = names.has("AbortError") || names.has("CancelledError");
  const code = isCancelled ? "CANCELLED" : memberOf(error, "code");
  const status = statusOf(error);
  const retryAfter = retryAfterOf(error);
  return {
    type: isCancelled ? "RETRYABLE" : kindOf(error, names, status),
    message: messageOf(error, thrown),
    ...(typeof code === "string" && { code }),
    cause: typeof error === "object" && error !== null ? nameOf(error) : typeof error,
    ...(retryAfter !== undefined && { retry_after_ms: retryAfter }),
    ...(status !== undefined && { upstream_status: status }),
  };
}

/** The failure inside wrappers that only pass it on: of the ADK, and of `fetch`. */
function rootOf(thrown: unknown): unknown {
  let error = thrown;
  for (let depth = 0; depth < CAUSES_MAX; depth++) {
    const cause = memberOf(error, "cause");
    const wraps = memberOf(error, "code") === "E_TOOL_DOWNSTREAM_ERROR" || memberOf(error, "message") === "fetch failed";
    if (!wraps || typeof cause !== "object" || cause === null) return error;
    error = cause;
  }
  return error;
}

function kindOf(error: unknown, names: Set<string>, status: number | undefined): Failure["type"] {
  const code = String(memberOf(error, "code"));
  if (status === 429) return "RATE_LIMIT";
  const isTimeout = [...names, code].some((name) => /timeout|ETIMEDOUT/i.test(name));
  if (status === 408 || status === 504 || (status === undefined && isTimeout)) return "TIMEOUT";
  if (status !== undefined) return status >= 500 ? "UPSTREAM" : "FATAL";
  const isValidation = ["ValidationError", "ZodError", "SyntaxError", "E_INVALID_TOOL_ARGS", "VALIDATION_EXCEPTION"];
  if (isValidation.some((name) => names.has(name) || code === name)) return "VALIDATION";
  return CONNECTION_CODES.has(code) ? "RETRYABLE" : "FATAL";
}

function namesOf(error: unknown): Set<string> {
  const names = new Set<string>();
  const own = memberOf(error, "name");
  if (typeof own === "string") names.add(own);
  let prototype: unknown = typeof error === "object" ? error : null;
  for (let depth = 0; depth < CAUSES_MAX && typeof prototype === "object" && prototype !== null; depth++) {
    names.add(nameOf(prototype));
    prototype = Object.getPrototypeOf(prototype);
  }
  return names;
}

function messageOf(error: unknown, thrown: unknown): string {
  for (const each of [error, thrown]) {
    const message = memberOf(each, "message");
    if (typeof message === "string" && message !== "") return message;
  }
  if (typeof error === "object" && error !== null) return nameOf(error);
  return typeof error === "symbol" ? "symbol" : String(error);
}

function statusOf(error: unknown): number | undefined {
  for (const holder of [memberOf(error, "response"), error]) {
    for (const name of ["status", "statusCode"]) {
      const value = memberOf(holder, name);
      if (typeof value === "number" && Number.isInteger(value) && value >= 100 && value <= 599) {
        // The ADK's errors have the status that a server of theirs would answer.
        return String(memberOf(error, "code")).startsWith("E_") ? undefined : value;
      }
    }
  }
  return undefined;
}

function retryAfterOf(error: unknown): number | undefined {
  for (const holder of [memberOf(error, "response"), error]) {
    const headers = memberOf(holder, "headers");
    const get = memberOf(headers, "get");
    const value: unknown = typeof get === "function" ? get.call(headers, "retry-after") : memberOf(headers, "retry-after");
    if (typeof value === "string" && /^\d{1,9}$/.test(value.trim())) return Number(value) * 1000;
  }
  return undefined;
}

/** A member of anything; undefined if there is none, or reading it throws. */
function memberOf(value: unknown, name: string): unknown {
  try {
    return (value as Record<string, unknown> | null | undefined)?.[name];
  } catch {
    return undefined;
  }
}
