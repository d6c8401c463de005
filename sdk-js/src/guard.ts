/**
 * Observes the verdicts of the package tool-output-guard, through the hooks and result shapes that
 * its document gives. The package is the host's; this module needs only its function `guard`.
 */
import type { GuardOutcome, GuardVerdict, Violation } from "./guardReport.js";
import type { Call } from "./recording.js";

/** The options of tool-output-guard that this module reads. Further ones are passed on. */
export interface GuardOptions {
  onInvalid?: string | undefined;
  toolName?: string | undefined;
  onValidationPass?: ((data: unknown) => void) | undefined;
  onValidationFail?: ((violations: Violation[]) => void) | undefined;
  onCoercion?: ((path: string, original: unknown, coerced: unknown) => void) | undefined;
  [option: string]: unknown;
}

/** The function `guard` of tool-output-guard. */
export type Guard = (
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- functions of any parameters
  fn: (...args: any[]) => any, schema: any, options?: any,
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
) => (...args: any[]) => any;

const OWN = new Set([
  "name", "description", "inputSchema", "outputSchema", "version", "timeoutsMs", "capture", "redact", "args", "mcp",
]);

/** Wraps a function with `guard`; the verdict of each run is noted on the call of `currentCall`. */
export function guarded(
  guard: Guard,
  fn: (...args: unknown[]) => unknown,
  schema: unknown,
  options: GuardOptions,
  currentCall: () => Call | undefined,
): (...args: unknown[]) => Promise<unknown> {
  const passedOn = Object.fromEntries(Object.entries(options).filter(([name]) => !OWN.has(name)));
  const strategy = options.onInvalid ?? "throw";
  return async function (this: unknown, ...args: unknown[]): Promise<unknown> {
    const seen = new Observed(strategy);
    const tool = async (...given: unknown[]): Promise<unknown> => seen.returned(await fn.apply(this, given));
    const hooks: GuardOptions = {
      onValidationPass: (data) => {
        seen.passed = true;
        options.onValidationPass?.(data);
      },
      onValidationFail: (violations) => {
        seen.violations = violations;
        options.onValidationFail?.(violations);
      },
      // Given only if the host gives it: without the hook, the package logs each coercion.
      ...(options.onCoercion && { onCoercion: options.onCoercion }),
    };
    const call = currentCall();
    try {
      const result: unknown = await guard(tool, schema, { ...passedOn, ...hooks })(...args);
      if (call && seen.hasReturned) call.verdict = seen.verdict(result, undefined);
      return result;
    } catch (error) {
      if (call && seen.violations) call.verdict = seen.verdict(undefined, error);
      throw error;
    }
  };
}

/** What the hooks of one run told. */
class Observed {
  hasReturned = false;
  passed = false;
  violations: Violation[] | undefined;
  #received: unknown;

  constructor(readonly strategy: string) {}

  returned(output: unknown): unknown {
    this.hasReturned = true;
    this.#received = output;
    return output;
  }

  verdict(result: unknown, error: unknown): GuardVerdict {
    const outcome = error === undefined ? this.#outcomeOf(result) : "failed";
    // After a coercion, the error lists what is still wrong.
    const own = (error as { violations?: unknown } | undefined)?.violations;
    const violations = Array.isArray(own) ? (own as Violation[]) : (this.violations ?? []);
    return { strategy: this.strategy, outcome, violations, received: this.#received, error };
  }

  #outcomeOf(result: unknown): GuardOutcome {
    if (this.violations === undefined) {
      // Valid data is returned as the same object; stripping makes a new one.
      const isSame = result === this.#received || this.strategy !== "strip-extra" || isEqual(result, this.#received);
      return isSame ? "passed" : "stripped";
    }
    switch (this.strategy) {
      case "fallback":
      case "error-result":
        return this.strategy;
      case "coerce-and-warn":
        return "coerced";
      default:
        return this.strategy === "strip-extra" ? "stripped" : "failed";
    }
  }
}

function isEqual(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
