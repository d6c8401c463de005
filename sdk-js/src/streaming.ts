/** Records a tool that yields its result in items: to its last item, its failure, or its end. */
import type { Call } from "./recording.js";
import { scopes } from "./scope.js";

/** Whether a tool returned an async generator, which runs as its consumer asks for items. */
export function isAsyncGenerator(value: unknown): value is AsyncGenerator {
  if (typeof value !== "object" || value === null) return false;
  const members = value as Record<PropertyKey, unknown>;
  return [Symbol.asyncIterator, "next", "return", "throw"].every((name) => typeof members[name] === "function");
}

/**
 * The same generator, recorded: how many items, the first and the last. What runs inside the tool is
 * nested in its call. A consumer that stops before the last item cancels the call.
 */
export async function* follow(items: AsyncGenerator, call: Call): AsyncGenerator {
  const summary: { items: number; first: unknown; last: unknown } = { items: 0, first: null, last: null };
  let isOver = false;
  try {
    let sent: unknown;
    for (;;) {
      const asked = sent;
      const step = (await scopes.run(call.scope, () => items.next(asked))) as IteratorResult<unknown, unknown>;
      if (step.done) {
        isOver = true;
        call.finish(step.value === undefined ? summary : { ...summary, returned: step.value });
        return step.value;
      }
      if (summary.items === 0) summary.first = step.value;
      summary.last = step.value;
      summary.items += 1;
      sent = yield step.value;
    }
  } catch (error) {
    isOver = true;
    call.fail(error);
    throw error;
  } finally {
    if (!isOver) {
      await scopes.run(call.scope, () => items.return(undefined));
      call.fail(new DOMException("The consumer stopped before the last item.", "AbortError"));
    }
  }
}
