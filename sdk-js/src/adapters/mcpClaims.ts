/**
 * A call that both sides of a connection could record is recorded once. The client's side adds a claim to the
 * request's `_meta`: that it has recorded the call. The server's side believes it if the claim was made with its
 * own API key, for this tool and these arguments, a moment ago, and is new. The Python SDK makes and reads the
 * same claims (`mcp_claims.py`).
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { canonicalStringify } from "../canonical.js";
import { toPlain } from "../plain.js";
import type { Call } from "../recording.js";
import { ID_MAX_LENGTH, makeScope, type Scope } from "../scope.js";
import type { Trail } from "../trail.js";

const MEMBER = "tooltrail/call";
const FRESH_MS = 5 * 60_000; // clocks differ
const REMEMBERED = 10_000;
const UUID7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const PROOF = /^[0-9a-f]{64}$/;
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
export function claimed(trail: Trail, { method, params }: Request): Scope | undefined {
  if (method !== "tools/call") return undefined;
  const claim = (params?.["_meta"] as Params | null | undefined)?.[MEMBER] as Params | null | undefined;
  const { invocation_id: id, trace_id: traceId, proof } = claim ?? {};
  if (typeof id !== "string" || !UUID7.test(id) || typeof proof !== "string" || !PROOF.test(proof)) return undefined;
  if (typeof traceId !== "string" || traceId === "" || traceId.length > ID_MAX_LENGTH) return undefined;
  if (trail.settings.apiKey === "" || believed.has(proof)) return undefined;
  const madeAt = parseInt(id.slice(0, 13).replace("-", ""), 16);
  if (!(Math.abs(Date.now() - madeAt) < FRESH_MS)) return undefined;
  if (!timingSafeEqual(Buffer.from(proof, "hex"), proofOf(trail, id, traceId, params ?? {}))) return undefined;
  const [oldest = ""] = believed;
  if (believed.size >= REMEMBERED) believed.delete(oldest);
  believed.add(proof);
  return makeScope({ traceId, parentInvocationId: id });
}

function proofOf(trail: Trail, id: string, traceId: string, params: Params): Buffer {
  const { requestState: state } = params; // of a later round of the same call
  const call = {
    args: toPlain(params["arguments"] ?? {}), id, tool: params["name"], trace: traceId, ...(typeof state === "string" && { state }),
  };
  return createHmac("sha256", trail.settings.apiKey).update(canonicalStringify(call)).digest();
}
