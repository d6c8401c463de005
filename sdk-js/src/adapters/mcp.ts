/**
 * MCP: records the tool calls that pass a transport, of a client or of a server. Every kind of
 * transport has the same interface, which is all that is used here.
 */
import { readMcpResult, stateOfTask } from "../mcpResults.js";
import { toPlain } from "../plain.js";
import type { Call } from "../recording.js";
import { type Scope, scopes } from "../scope.js";
import type { Trail } from "../trail.js";
import { claimed, claiming } from "./mcpClaims.js";

const OPEN_MAX = 1000; // tasks, whose end may never be asked for
const INTERNAL_ERROR = -32603;

/** What is used of an SDK's `Transport`. */
export interface McpTransport {
  start(): Promise<void>;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- messages are the SDK's types
  send(message: any, options?: any): Promise<void>;
  close(): Promise<void>;
}

interface Message {
  id?: string | number;
  method?: string;
  params?: Record<string, unknown> | undefined;
  result?: Record<string, unknown>;
  error?: { code?: unknown; message?: unknown };
}

type Handler = (...given: unknown[]) => void;

/**
 * The same transport, recorded: `await client.connect(recordTransport(trail, transport))`, or a server's.
 * A call that client and server both record with one API key is one call, the client's. One that a client
 * cancels is cancelled; one that returns a task is open until somebody asks for its result. Throws nothing
 * into the host, except SpoolFullError instead of a call with `whenFull: "raise"`.
 */
export function recordTransport<T extends McpTransport>(trail: Trail, transport: T): T {
  const sent = new Session(trail, "client");
  const received = new Session(trail, "server");

  async function send(message: Message, ...options: unknown[]): Promise<void> {
    received.answered(message);
    sent.cancelled(message);
    const call = sent.asked(message);
    try {
      // In the call: a server in this process runs its tool before `send` returns.
      const passed = (call && trail.attempt(() => claiming(trail, call, message))) ?? message;
      const pass = (): Promise<void> => transport.send(passed, ...(options as [unknown?]));
      await (call ? scopes.run(call.scope, pass) : pass());
    } catch (error) {
      call?.fail(error);
      throw error;
    }
  }

  function receive(handler: Handler): Handler {
    return (...given) => {
      const message = given[0] as Message;
      sent.answered(message);
      received.cancelled(message);
      let scope: Scope | undefined;
      try {
        scope = trail.attempt(() => claimed(trail, message)) ?? received.asked(message)?.scope;
      } catch (error) { // SpoolFullError: the tool must not run unrecorded
        const { message: why } = error as Error;
        void transport.send({ jsonrpc: "2.0", id: message.id, error: { code: INTERNAL_ERROR, message: why } });
        return;
      }
      if (scope) scopes.run(scope, handler, ...given);
      else handler(...given);
    };
  }

  function closing(handler: Handler): Handler {
    return (...given) => {
      sent.end(Object.assign(new Error("the connection was closed"), { code: "ECONNRESET" }));
      received.end(new DOMException("the connection was closed", "AbortError"));
      handler(...given);
    };
  }

  return new Proxy(transport, {
    get(target, name) {
      if (name === "send") return send;
      const value: unknown = Reflect.get(target, name, target);
      // Bound, because private members of a class are not those of a proxy.
      return typeof value === "function" && !HANDLERS.has(name) ? (value.bind(target) as unknown) : value;
    },
    set(target, name, value: unknown) {
      const isHandler = typeof value === "function";
      if (isHandler && name === "onmessage") return Reflect.set(target, name, receive(value as Handler), target);
      if (isHandler && name === "onclose") return Reflect.set(target, name, closing(value as Handler), target);
      return Reflect.set(target, name, value, target);
    },
  });
}

const HANDLERS = new Set<PropertyKey>(["onmessage", "onclose", "onerror"]);

/** The calls in one direction of a connection: those of its client. */
class Session {
  readonly #trail: Trail;
  /** The side that records: `client` sees its own calls, `server` those it runs. */
  readonly #side: "client" | "server";
  readonly #calls = new Map<unknown, Call>();
  /** Requests that are no calls of tools and whose answers are read: their method, and their task. */
  readonly #asked = new Map<unknown, { method: string; taskId?: unknown }>();
  readonly #tasks = new Map<unknown, { call: Call; state: string }>();
  #peers: Record<string, unknown> = {};

  constructor(trail: Trail, side: "client" | "server") {
    this.#trail = trail;
    this.#side = side;
  }

  /** Notes a request. Returns the call if it calls a tool. Throws SpoolFullError. */
  asked(message: Message): Call | undefined {
    return this.#trail.attempt(() => {
      const { id, method, params = {} } = message;
      if (id === undefined || method === undefined) return undefined;
      if (method === "tools/call" && typeof params["name"] === "string") {
        const traceparent = this.#side === "server" ? (params["_meta"] as Message["params"])?.["traceparent"] : undefined;
        const begin = (): Call => this.#trail.begin(params["name"] as string, params["arguments"] ?? {});
        const call = typeof traceparent === "string" ? this.#trail.trace({ traceparent }, begin) : begin();
        call.mcp = this.#peers;
        this.#calls.set(id, call);
        return call;
      }
      if (method === "initialize") {
        this.#peers = { client: params["clientInfo"], protocol_version: params["protocolVersion"] };
        this.#asked.set(id, { method });
      } else if (method.startsWith("tasks/") && this.#tasks.has(params["taskId"])) {
        this.#asked.set(id, { method, taskId: params["taskId"] });
      }
      return undefined;
    });
  }

  /** Ends the call that a response answers. */
  answered(message: Message): void {
    const { id, method, result, error } = message;
    if (id === undefined || method !== undefined) return;
    this.#trail.attempt(() => {
      const call = this.#calls.get(id);
      if (call) {
        this.#calls.delete(id);
        if (error) call.fail(failureOf(error));
        else this.#finish(call, result);
        return;
      }
      const request = this.#asked.get(id);
      this.#asked.delete(id);
      if (!request || !result) return;
      if (request.method === "initialize") {
        const { serverInfo: server, protocolVersion } = result;
        this.#peers = { ...this.#peers, server, protocol_version: protocolVersion };
      } else this.#continue(request.taskId, request.method, result);
    });
  }

  /** Ends the call that the client cancels, or no longer waits for. */
  cancelled({ method, params }: Message): void {
    if (method !== "notifications/cancelled") return;
    const { requestId, reason } = params ?? {};
    const call = this.#calls.get(requestId);
    this.#calls.delete(requestId);
    const text = typeof reason === "string" && reason !== "" ? reason : "the client cancelled the call";
    const isLate = this.#side === "client" && /\btimed out\b/i.test(text);
    call?.fail(new DOMException(text, isLate ? "TimeoutError" : "AbortError"));
  }

  /** Ends all calls, because the connection is closed. Tasks may be asked for over another one. */
  end(error: Error): void {
    for (const call of this.#calls.values()) call.fail(error);
    this.#calls.clear();
  }

  #finish(call: Call, result: unknown): void {
    call.finishMcp(result);
    const { taskId, state } = readMcpResult(toPlain(result));
    if (taskId === undefined || (state !== "working" && state !== "waiting")) return;
    this.#tasks.set(taskId, { call, state });
    const [oldest] = this.#tasks.keys();
    if (this.#tasks.size > OPEN_MAX) this.#tasks.delete(oldest);
  }

  /** Records what the answer to a request about a task says of it. */
  #continue(taskId: unknown, method: string, result: Record<string, unknown>): void {
    const task = this.#tasks.get(taskId);
    if (!task) return;
    const { status } = result;
    const state = stateOfTask(status);
    const hasResult = method === "tasks/result" || (status === "completed" && typeof result["result"] === "object");
    if (hasResult || status === "failed" || state === "cancelled") {
      this.#tasks.delete(taskId);
      task.call.finishMcp(method === "tasks/result" ? result : (result["result"] ?? { task: result }));
    } else if ((state === "waiting" || state === "working") && state !== task.state) {
      task.state = state;
      task.call.report(state);
    }
  }
}

function failureOf({ code, message }: { code?: unknown; message?: unknown }): Error {
  const error = new Error(typeof message === "string" ? message : "the request failed");
  error.name = "McpError";
  return Object.assign(error, { code: String(code) });
}
