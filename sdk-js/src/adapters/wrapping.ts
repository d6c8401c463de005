/** Tools of frameworks that are objects with a function: copies of them whose function is recorded. */
import type { Call } from "../recording.js";
import type { TraceContext } from "../scope.js";
import type { Trail } from "../trail.js";

/** The failure that a framework reports by its text only. */
export class ReportedError extends Error {
  override name = "ReportedError";
}

/** How one call of a tool is recorded. */
export interface Observed {
  name: string;
  args: unknown;
  context: TraceContext;
  /** The text of a failure that a framework returns instead of throwing it. */
  failureIn?: (result: unknown) => string | undefined;
}

/** Runs a tool's function as one call. Returns and throws what the function does. */
export function observe(trail: Trail, { name, args, context, failureIn }: Observed, run: () => unknown): unknown {
  const work = (call: Call): unknown => {
    const result = run();
    if (!failureIn || !isThenable(result)) return result;
    return result.then((returned) => {
      trail.attempt(() => {
        const text = failureIn(returned);
        if (text !== undefined) call.fail(new ReportedError(text));
      });
      return returned;
    });
  };
  return trail.trace(context, () => trail.record(name, args, work));
}

/** A copy of an object of any class, with other members. */
export function copyWith<T extends object>(original: T, members: Partial<T>): T {
  const descriptors = Object.getOwnPropertyDescriptors(original);
  const copy = Object.create(Object.getPrototypeOf(original) as object | null, descriptors) as T;
  for (const [name, value] of Object.entries(members)) {
    Object.defineProperty(copy, name, { value, configurable: true, enumerable: true, writable: true });
  }
  return copy;
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function";
}
