/**
 * The ADK (package `@nhtio/adk`): ships the events `toolExecutionStart` and `toolExecutionEnd` of a context
 * with their members as they are. The interface used is the documented one of `Tool.executor` and of the
 * context that it is given; nothing of the package is imported.
 */
import type { WireEvent } from "../emitted.js";
import { describeFailure } from "../failures.js";
import { makeScope, type Scope, scopes } from "../scope.js";
import type { OpenCall } from "../streaming.js";
import type { Trail } from "../trail.js";
import { uuid7 } from "../uuid.js";

/** Events of the ADK: `toolName`, `turnId`, `callId`, `startedAt` …, in camel case. */
type AdkEvent = object;
type EventType = WireEvent["type"];
type Listener = (event: AdkEvent) => void;

/** What is used of a `Tool`. */
export interface AdkTool {
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- the ADK's own types
  executor(ctx: any): (args: unknown) => Promise<any>;
}

/** What is used of a context: its id, and its functions `emitToolExecutionStart` and `emitToolExecutionEnd`. */
export interface AdkContext {
  readonly id?: unknown;
}

/**
 * Listeners that ship what they get, for hosts that can subscribe to a context's events:
 * `context.on("toolExecutionStart", listeners(trail).toolExecutionStart)`. The events contain neither
 * results nor errors; `recordExecutor` adds them.
 */
export function listeners(trail: Trail): Record<EventType, Listener> {
  const shipped = (type: EventType): Listener => (event) => { trail.emit(wireEvent(type, event, {})); };
  return { toolExecutionStart: shipped("toolExecutionStart"), toolExecutionEnd: shipped("toolExecutionEnd") };
}

/**
 * The same context, recorded, to be given to `tool.executor(…)`: what a tool emits on it is shipped, and
 * passed on.
 */
export function recordContext<C extends object>(trail: Trail, ctx: C): C {
  return observed(ctx, listeners(trail));
}

/**
 * What `tool.executor(ctx)` returns, recorded: the tool's events with its result or error added to the
 * end, which is kept before the caller goes on. Calls that the handler makes are nested in its call. A
 * result that comes in items is followed to the last one, and the end's times are then those of that.
 */
export function recordExecutor<T extends AdkTool>(trail: Trail, tool: T, ctx: AdkContext): ReturnType<T["executor"]> {
  const execute = async (args: unknown): Promise<unknown> => {
    const outer = scopes.getStore();
    const id = uuid7();
    const within = {
      invocation_id: id,
      ...(outer && { trace_id: outer.traceId, parent_invocation_id: outer.parentId }),
    };
    const turnId = typeof ctx.id === "string" ? ctx.id : undefined;
    const scope = makeScope({ traceId: outer?.traceId ?? turnId, turnId, parentInvocationId: id });
    const call = new AdkCall(trail, scope, within);
    const context = observed(ctx, {
      toolExecutionStart: (event) => { trail.emit(wireEvent("toolExecutionStart", event, within)); },
      toolExecutionEnd: (event) => { call.ended(event); },
    });
    try {
      const result: unknown = await scopes.run(scope, () => tool.executor(context)(args));
      const items = trail.follow(result, call);
      if (items !== undefined) {
        call.comesInItems = true;
        return items;
      }
      call.finish(result);
      return result;
    } catch (error) {
      call.fail(error);
      throw error;
    }
  };
  return execute as ReturnType<T["executor"]>;
}

/** The ADK's event of an end, and when it came (`performance.now()`). */
interface AdkEnd {
  event: AdkEvent;
  at: number;
}

/** One call of a tool: its end is shipped when both are known, the ADK's event and how the call ended. */
class AdkCall implements OpenCall {
  /** Whether the items come after the handler has returned: the ADK's event then says too early an end. */
  comesInItems = false;
  #end: AdkEnd | undefined;
  #outcome: Record<string, unknown> | undefined;

  constructor(
    private readonly trail: Trail,
    readonly scope: Scope,
    private readonly within: object,
  ) {}

  /** The ADK's event: the handler has returned or thrown. */
  ended(event: AdkEvent): void {
    if (this.#end) return;
    this.#end = { event, at: performance.now() };
    this.#ship();
  }

  finish(data: unknown): void {
    this.#close({ output: { status: "ok", data } }, false);
  }

  fail(thrown: unknown): void {
    const error = describeFailure(thrown);
    const state = error.code === "CANCELLED" ? { call_state: "cancelled" } : {};
    this.#close({ ...state, output: { status: "error", error } }, true);
  }

  #close(outcome: Record<string, unknown>, isError: boolean): void {
    if (this.#outcome) return;
    const later = this.comesInItems && this.#end ? { ...laterEnd(this.#end), isError } : {};
    this.#outcome = { ...outcome, ...later };
    this.#ship();
  }

  #ship(): void {
    if (!this.#end || !this.#outcome) return;
    this.trail.emit(wireEvent("toolExecutionEnd", this.#end.event, { ...this.within, ...this.#outcome }));
  }
}

/** The members that say when a call ended, if it ends now. By the clock that is never set. */
function laterEnd({ event, at }: AdkEnd): Record<string, unknown> {
  const { durationMs, endedAt } = event as { durationMs?: unknown; endedAt?: unknown };
  const waited = performance.now() - at;
  const ended = new Date(endedAt as Date).getTime() + waited;
  return { durationMs: Number(durationMs) + waited, endedAt: new Date(Number.isFinite(ended) ? ended : Date.now()) };
}

function wireEvent(type: EventType, event: AdkEvent, added: Record<string, unknown>): WireEvent {
  const known = Object.entries(added).filter(([, value]) => value !== undefined);
  return { ...event, ...Object.fromEntries(known), type } as WireEvent;
}

/** A context whose emitted events also go to listeners. */
function observed<C extends object>(ctx: C, told: Record<EventType, Listener>): C {
  return new Proxy(ctx, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      const own = value.bind(target) as (...given: unknown[]) => unknown;
      const listener = told[EMITTERS[String(name)] ?? ("" as EventType)] as Listener | undefined;
      if (!listener) return own;
      return (event: AdkEvent, ...more: unknown[]): unknown => {
        listener(event); // before the host's listeners, as the tool runs next
        return own(event, ...more);
      };
    },
  });
}

const EMITTERS: Record<string, EventType | undefined> = {
  emitToolExecutionStart: "toolExecutionStart",
  emitToolExecutionEnd: "toolExecutionEnd",
};
