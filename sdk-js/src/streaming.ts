/** Records a tool that returns its result in items: to its last item, its failure, or its end. */
import { type Scope, scopes } from "./scope.js";

type Step = IteratorResult<unknown, unknown>;

/** A call that has not ended. What ends one that has is ignored. */
export interface OpenCall {
  readonly scope: Scope;
  finish(summary: unknown): void;
  fail(error: unknown): void;
}

/** A stream of Node, as much of it as is used. */
interface NodeStream {
  readableEnded?: unknown;
  destroyed?: unknown;
  emit(...given: unknown[]): unknown;
  _read(...given: unknown[]): unknown;
}

/** Calls whose items nobody can ask for any more, as what has them was collected. Those that have ended stay so. */
const abandoned = new FinalizationRegistry<OpenCall>((call) => { call.fail(stopped()); });

/** `[Symbol.asyncIterator]` of objects whose own one was replaced: one that is returned again is followed once. */
const replaced = new WeakMap<object, () => AsyncIterator<unknown>>();

/**
 * What a tool returned, recorded if it comes in items: an async generator, a stream of the web or of Node, or another
 * async iterable. Its call ends with the last item, and contains how many there were, the first and the
 * last. What runs inside the tool is nested in its call. A consumer that stops before the last item, or never
 * begins, cancels the call. Undefined for any other value.
 */
export function followed(result: unknown, call: OpenCall): unknown {
  const items = itemsOf(result, call);
  if (items !== undefined) abandoned.register(items, call);
  return items;
}

function itemsOf(result: unknown, call: OpenCall): object | undefined {
  if (typeof result !== "object" || result === null) return undefined;
  const { asyncIterator } = Symbol;
  const members = result as Record<PropertyKey, unknown>;
  if (typeof members[asyncIterator] !== "function") return undefined;
  if (has(members, "pipe", "_read", "emit")) return followNode(result as unknown as NodeStream, call);
  if (result instanceof ReadableStream) return result.locked ? undefined : followWeb(result, call);
  if (has(members, "next", "return", "throw")) return new Followed(result as unknown as AsyncIterator<unknown>, call);
  const iterate = replaced.get(result) ?? (members[asyncIterator] as () => AsyncIterator<unknown>);
  // The same object, as it may have members that its consumer uses; a frozen one cannot be followed.
  if (!replace(result, asyncIterator, () => new Followed(iterate.call(result), call))) return undefined;
  replaced.set(result, iterate);
  return result;
}

function has(members: Record<PropertyKey, unknown>, ...names: PropertyKey[]): boolean {
  return names.every((name) => typeof members[name] === "function");
}

function replace(object: object, name: PropertyKey, value: (...given: unknown[]) => unknown): boolean {
  return Reflect.defineProperty(object, name, { value, configurable: true, writable: true });
}

/** How many items there were, the first and the last: as much as one event may carry. */
class Items {
  #count = 0;
  #first: unknown = null;
  #last: unknown = null;

  add(item: unknown): void {
    if (this.#count === 0) this.#first = item;
    this.#last = item;
    this.#count += 1;
  }

  summary(returned?: unknown): Record<string, unknown> {
    const summary = { items: this.#count, first: this.#first, last: this.#last };
    return returned === undefined ? summary : { ...summary, returned };
  }
}

/** The same items, recorded as their consumer asks for them. */
class Followed implements AsyncGenerator {
  readonly #from: AsyncIterator<unknown>;
  readonly #call: OpenCall;
  readonly #items = new Items();

  constructor(from: AsyncIterator<unknown>, call: OpenCall) {
    this.#from = from;
    this.#call = call;
  }

  next(...sent: [] | [unknown]): Promise<Step> {
    return this.#step(() => this.#from.next(...sent));
  }

  throw(error: unknown): Promise<Step> {
    return this.#step(() => this.#from.throw?.(error) ?? Promise.reject(error as Error));
  }

  async return(value?: unknown): Promise<Step> {
    const step = await scopes.run(this.#call.scope, () => this.#from.return?.(value));
    if (step?.done !== false) this.#call.fail(stopped());
    return step ?? { done: true, value };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async #step(go: () => Promise<Step>): Promise<Step> {
    try {
      const step = await scopes.run(this.#call.scope, go);
      if (step.done) this.#call.finish(this.#items.summary(step.value));
      else this.#items.add(step.value);
      return step;
    } catch (error) {
      this.#call.fail(error);
      throw error;
    }
  }
}

// As generators: `await using` finds `Symbol.asyncDispose` there, in newer versions of Node.
const generators = (async function* () { /* of no items */ }).prototype as object;
Object.setPrototypeOf(Followed.prototype, Object.getPrototypeOf(Object.getPrototypeOf(generators) as object) as object);

function followWeb(stream: ReadableStream<unknown>, call: OpenCall): ReadableStream<unknown> {
  const reader = stream.getReader();
  const cancel = async (reason: unknown): Promise<Step> => {
    await reader.cancel(reason);
    return { done: true, value: undefined };
  };
  const items = new Followed({ next: () => reader.read() as Promise<Step>, return: cancel }, call);
  const source = {
    async pull(controller: ReadableStreamDefaultController): Promise<void> {
      const { done, value } = await items.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    async cancel(reason: unknown): Promise<void> {
      await items.return(reason);
    },
  };
  return new ReadableStream(source, { highWaterMark: 0 }); // it reads nothing ahead
}

/** The same stream: it emits each chunk, whichever way it is read. A listener would begin to read it. */
function followNode(stream: NodeStream, call: OpenCall): NodeStream | undefined {
  if (stream.readableEnded === true || stream.destroyed === true) return undefined;
  const items = new Items();
  const [emit, read] = [stream.emit.bind(stream), stream._read.bind(stream)];
  replace(stream, "_read", (...given) => scopes.run(call.scope, read, ...given));
  const isReplaced = replace(stream, "emit", (name, ...given) => {
    if (name === "data") items.add(given[0]);
    else if (name === "end") call.finish(items.summary());
    else if (name === "error") call.fail(given[0]);
    else if (name === "close") call.fail(stopped()); // unless it has ended
    return emit(name, ...given);
  });
  return isReplaced ? stream : undefined;
}

function stopped(): Error {
  return new DOMException("The consumer stopped before the last item.", "AbortError");
}
