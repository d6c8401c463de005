/**
 * `Trail`, the main object of the SDK for an executor's author.
 *
 * Nothing here throws into the host, except for an invalid option, and with `whenFull: "raise"`.
 */
import { Announcer } from "./announcer.js";
import { Capture, type CaptureMode } from "./capture.js";
import { emittedText, type WireEvent } from "./emitted.js";
import { guarded, type Guard, type GuardOptions } from "./guard.js";
import { isPlainObject } from "./canonical.js";
import { atExit } from "./lifetime.js";
import { Producer } from "./producer.js";
import { Call, ToolSpec, type Append } from "./recording.js";
import { Redactor } from "./redact.js";
import { makeScope, scopes, type TraceContext } from "./scope.js";
import { readSettings, type Settings, type TrailOptions } from "./settings.js";
import type { Stats } from "./stats.js";
import { followed, type OpenCall } from "./streaming.js";

const NAME_MAX_LENGTH = 256;

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- functions of any parameters
type AnyFunction = (...args: any[]) => unknown;

/** An event could not be kept, and the trail must not run tools unrecorded (`whenFull: "raise"`). */
export class SpoolFullError extends Error {
  override name = "SpoolFullError";
}

export interface ToolOptions {
  /** Default: the function's name. */
  name?: string | undefined;
  /** Described to the registry, as are the schemas (JSON Schema). */
  description?: string | undefined;
  inputSchema?: unknown;
  outputSchema?: unknown;
  /** The tool's version in its events. Default: the digest of its contract, if it has a description or schema. */
  version?: string | undefined;
  /** The call's timeout in milliseconds. It is recorded, not enforced. */
  timeoutsMs?: number | undefined;
  capture?: CaptureMode | undefined;
  redact?: Redactor | boolean | undefined;
  /**
   * The arguments to record, from those of the function. Default: the first if it is an object
   * (what follows is the framework's), else all of them as the list `args`.
   */
  args?: ((...given: unknown[]) => unknown) | undefined;
  /** Whether results are those of MCP, `CallToolResult`. */
  mcp?: boolean | undefined;
}

/** Records the calls of tools and sends them to a Tooltrail server. */
export class Trail {
  readonly settings: Settings;
  readonly #redactor: Redactor | undefined;
  readonly #capture: Capture;
  readonly #announcer: Announcer;
  readonly #raises: boolean;
  readonly #isOn: boolean;
  readonly #warned = new Set<string>();
  #producer: Producer | undefined;

  /** Options that are not given are read from the environment. Throws TypeError for an invalid one. */
  constructor(options: TrailOptions = {}) {
    const warn = (message: string): void => { this.#warn(message); };
    this.settings = readSettings(options, warn);
    const { redact = true } = options;
    this.#redactor = redact === true ? new Redactor() : redact === false ? undefined : redact;
    this.#capture = this.#captureFor(undefined, undefined);
    this.#announcer = new Announcer(warn);
    this.#raises = this.settings.whenFull === "raise";
    const missing = this.settings.url === "" ? "TOOLTRAIL_URL" : this.settings.apiKey === "" ? "TOOLTRAIL_API_KEY" : "";
    if (missing !== "" && this.#raises) throw new TypeError(`${missing} is not set, but tools must not run unrecorded`);
    if (missing !== "") warn(`${missing} is not set, so no calls are recorded`);
    this.#isOn = missing === "";
  }

  // Recording

  /** Wraps a function: each call is recorded. The wrapper returns and throws what the function does. */
  tool<F extends AnyFunction>(fn: F, options: ToolOptions = {}): F {
    const spec = this.#specFor(options.name ?? (fn.name === "" ? "anonymous" : fn.name), options);
    const argsOf = options.args ?? recordedArgs;
    // eslint-disable-next-line @typescript-eslint/no-this-alias -- the wrapper has the function's `this`
    const trail = this;
    const wrapper = function (this: unknown, ...given: unknown[]): unknown {
      const args = trail.attempt(() => argsOf(...given));
      return trail.#run(spec, args, () => fn.apply(this, given), options.mcp ?? false);
    };
    for (const name of ["name", "length"] as const) {
      Object.defineProperty(wrapper, name, { value: fn[name], configurable: true });
    }
    return wrapper as unknown as F;
  }

  /**
   * Wraps a function with the `guard` of the package tool-output-guard, and records its calls with
   * the guard's verdicts: `trail.guarded(guard, fetchWeather, schema, { onInvalid: "coerce-and-warn" })`.
   */
  guarded<F extends AnyFunction>(guard: Guard, fn: F, schema: unknown, options: GuardOptions & ToolOptions = {}): F {
    const name = options.name ?? options.toolName ?? fn.name;
    const judged = guarded(guard, fn, schema, options, () => scopes.getStore()?.call);
    return this.tool(judged as F, { ...options, name, outputSchema: options.outputSchema });
  }

  /** Records what `work` does as one call of `tool`; its result is the call's. */
  record<T>(tool: string, args: unknown, work: (call: Call) => T): T {
    return this.#run(this.#specFor(tool, {}), args, work, false) as T;
  }

  /**
   * Starts a call of `tool` that ends with `finish`, `finishMcp` or `fail` of what is returned: for hosts
   * that report a tool's start and end in two places. Throws SpoolFullError with `whenFull: "raise"`.
   */
  begin(tool: string, args: unknown): Call {
    return this.#begin(this.#specFor(tool, {}), args);
  }

  /** Runs `work` in a trace: the calls in it have its id and context, and what is not given is inherited. */
  trace<T>(trace: string | TraceContext | undefined, work: (traceId: string) => T): T {
    const scope = makeScope(typeof trace === "object" ? trace : { traceId: trace });
    return scopes.run(scope, () => work(scope.traceId));
  }

  /** The call that the running code belongs to. Outside any call, one that is not recorded. */
  current(): Call {
    return scopes.getStore()?.call ?? this.#unrecorded();
  }

  /** Records one event of the wire contract, in snake case. Never throws. */
  emit(event: WireEvent): void {
    const append = this.#append();
    if (append) this.attempt(() => append(emittedText(event, this.#capture)));
  }

  /**
   * What a tool returned, if it comes in items: `call` ends with the last one, when the consumer stops, or with
   * a failure. Undefined for any other value, which ends no call. Adapters use it that report calls themselves.
   */
  follow(returned: unknown, call: OpenCall): unknown {
    return this.#isOn ? this.attempt(() => followed(returned, call)) : undefined;
  }

  #run(spec: ToolSpec, args: unknown, work: (call: Call) => unknown, isMcp: boolean): unknown {
    const call = this.#begin(spec, args);
    return scopes.run(call.scope, () => {
      let result: unknown;
      try {
        result = work(call);
      } catch (error) {
        call.fail(error);
        throw error;
      }
      const finish = (returned: unknown): unknown => {
        if (isMcp) call.finishMcp(returned);
        else {
          const items = this.follow(returned, call);
          if (items !== undefined) return items;
          call.finish(returned);
        }
        return returned;
      };
      if (!isThenable(result)) return finish(result);
      return result.then(finish, (error: unknown) => {
        call.fail(error);
        throw error;
      });
    });
  }

  #begin(spec: ToolSpec, args: unknown): Call {
    const append = this.#append();
    try {
      const call = new Call(spec, append, (error) => { this.#complain(error); });
      if (call.start(args) || !this.#raises) return call;
    } catch (error) {
      this.#complain(error);
      if (!this.#raises) return this.#unrecorded();
    }
    throw new SpoolFullError("the call cannot be recorded, so the tool was not run");
  }

  #unrecorded(): Call {
    return new Call(new ToolSpec("none", this.#capture), undefined, (error) => { this.#complain(error); });
  }

  #specFor(name: string, options: ToolOptions): ToolSpec {
    const { description, inputSchema, outputSchema } = options;
    const shortened = name.slice(0, NAME_MAX_LENGTH);
    let { version } = options;
    if (this.#isOn && (description ?? inputSchema ?? outputSchema) !== undefined) {
      const contract = { name: shortened, description, inputSchema, outputSchema };
      version ??= this.attempt(() => this.#announcer.add(contract));
    }
    return new ToolSpec(shortened, this.#captureFor(options.capture, options.redact), version, options.timeoutsMs);
  }

  #captureFor(mode: CaptureMode | undefined, redact: Redactor | boolean | undefined): Capture {
    const redactor =
      redact === undefined ? this.#redactor
      : redact === true ? (this.#redactor ?? new Redactor())
      : redact === false ? undefined
      : redact;
    return new Capture(mode ?? this.settings.capture, redactor, this.settings.maxPayloadBytes);
  }

  // Lifetime

  /** The counters of this thread's events so far. */
  stats(): Stats {
    return this.#producer?.stats() ?? {
      emitted: 0, adopted: 0, acknowledged: 0, duplicates: 0, rejected: 0, inMemory: 0, waiting: 0, dropped: {},
    };
  }

  /**
   * Sends what is waiting now, and waits up to `timeout` seconds. Resolves to whether the server has
   * everything that was recorded before. Never rejects.
   */
  async flush(timeout = 10): Promise<boolean> {
    try {
      return (await this.#producer?.shipper.flush(timeout * 1000)) ?? true;
    } catch (error) {
      this.#complain(error);
      return false;
    }
  }

  /**
   * Flushes and releases the spool; a later event opens it again. If the server does not answer,
   * unsent events stay in the spool for the next process. Never rejects.
   */
  async close(timeout: number = this.settings.exitTimeout): Promise<boolean> {
    const producer = this.#producer;
    this.#producer = undefined;
    try {
      return (await producer?.close(timeout * 1000)) ?? true;
    } catch (error) {
      this.#complain(error);
      return false;
    }
  }

  #append(): Append | undefined {
    if (!this.#isOn) return undefined;
    const producer = this.#producer ?? this.#open();
    if (!producer) return this.#raises ? () => false : undefined;
    if (this.#raises && producer.spool.isFull) return () => false;
    return (head) => producer.spool.append(head);
  }

  #open(): Producer | undefined {
    return this.attempt(() => {
      const producer = new Producer(this.settings, this.#announcer, (message) => { this.#warn(message); });
      this.#producer = producer;
      atExit(this, () => {
        this.attempt(() => this.#producer?.spool.close());
      });
      return producer;
    });
  }

  /**
   * Runs work of ours, or of an adapter: an error is logged once, and never reaches the host, except
   * SpoolFullError.
   */
  attempt<T>(work: () => T): T | undefined {
    try {
      return work();
    } catch (error) {
      if (error instanceof SpoolFullError) throw error;
      this.#complain(error);
      return undefined;
    }
  }

  #complain(error: unknown): void {
    this.#warn(`an event was lost because of an error in the SDK: ${error instanceof Error ? error.name : "Error"}`);
  }

  #warn(message: string): void {
    if (this.#warned.has(message)) return;
    this.#warned.add(message);
    process.emitWarning(`tooltrail: ${message}`);
  }
}

function recordedArgs(...given: unknown[]): unknown {
  const [first] = given;
  if (given.length === 0 || (given.length === 1 && first === undefined)) return {};
  if (typeof first === "object" && first !== null && !Array.isArray(first) && isPlainObject(first)) return first;
  return { args: given };
}

function isThenable(value: unknown): value is Promise<unknown> {
  return typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function";
}
