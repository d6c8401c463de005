/**
 * A call that both sides of a connection could record is recorded once. The client's side adds a claim to the
 * request's `_meta`: that it has recorded the call. The server's side believes it if the claim was made with its
 * own API key, for this tool and these arguments, a moment ago, and is new.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { canonicalStringify } from "../canonical.js";
import { toPlain } from "../plain.js";
import type { Call } from "../recording.js";
import { makeScope, type Scope } from "../scope.js";
import type { Trail } from "../trail.js";

const MEMBER = "tooltrail/call";
const FRESH_MS = 5 * 60_000; // clocks differ
const REMEMBERED = 10_000;
const believed = new Set<string>();

type Params = Record<string, unknown>;

interface Request {
  method?: string;
  params?: Params | undefined;
}

/** The request of a call with the claim that `call` is its record. */
export function claiming<T extends Request>(trail: Trail, call: Call, request: T): T {
  if (!call.isKept) return request;
  const { params = {} } = request;
  const proof = proofOf(trail, call.id, call.traceId, params).toString("hex");
  const claim = { invocation_id: call.id, trace_id: call.traceId, proof };
  return { ...request, params: { ...params, _meta: { ...(params["_meta"] as Params | undefined), [MEMBER]: claim } } };
}

/** The scope inside the call that the client has recorded; undefined if it claims none, or cannot be believed. */
export function claimed(trail: Trail, { method, params = {} }: Request): Scope | undefined {
  if (method !== "tools/call") return undefined;
  const claim = (params["_meta"] as Params | undefined)?.[MEMBER] as Params | undefined;
  const { invocation_id: id, trace_id: traceId, proof } = claim ?? {};
  if (typeof id !== "string" || typeof traceId !== "string" || typeof proof !== "string") return undefined;
  if (trail.settings.apiKey === "" || believed.has(id)) return undefined;
  const madeAt = parseInt(id.slice(0, 13).replace("-", ""), 16);
  if (!(Math.abs(Date.now() - madeAt) < FRESH_MS)) return undefined;
  const given = Buffer.from(proof, "hex");
  const right = proofOf(trail, id, traceId, params);
  if (given.length !== right.length || !timingSafeEqual(given, right)) return undefined;
  const [oldest = ""] = believed;
  if (believed.size >= REMEMBERED) believed.delete(oldest);
  believed.add(id);
  return makeScope({ traceId, parentInvocationId: id });
}

function proofOf(trail: Trail, id: string, traceId: string, params: Params): Buffer {
  const call = { args: toPlain(params["arguments"] ?? {}), id, tool: params["name"], trace: traceId };
  return createHmac("sha256", trail.settings.apiKey).update(canonicalStringify(call)).digest();
}
