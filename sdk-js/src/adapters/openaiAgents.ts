/** OpenAI Agents (package `@openai/agents`): records the function tools of agents. */
import type { Trail } from "../trail.js";
import { copyWith, observe } from "./wrapping.js";

interface Details {
  toolCall?: { callId?: unknown } | undefined;
}

type Run = (input: unknown, context: unknown, details: Details | undefined) => unknown;

/**
 * The options of a tool, recorded: `tool(recordTool(trail, { name: "get_weather", parameters, execute }))`;
 * or a tool that exists, recorded: `recordTool(trail, agent.asTool({ … }))`. With the options, a failure is
 * seen before `errorFunction` makes a text of it.
 */
export function recordTool<T extends object>(trail: Trail, tool: T): T {
  const { name, execute, invoke } = tool as { name?: unknown; execute?: unknown; invoke?: unknown };
  if (typeof execute === "function") {
    const run: Run = (input, context, details) => execute.call(tool, input, context, details) as unknown;
    const named = typeof name === "string" ? name : execute.name;
    return copyWith(tool as { execute: unknown }, { execute: recorded(trail, named, run) }) as T;
  }
  if (typeof invoke === "function" && typeof name === "string") {
    const run: Run = (input, context, details) => invoke.call(tool, context, input, details) as unknown;
    const record = recorded(trail, name, run);
    const wrapper = (context: unknown, input: unknown, details?: Details): unknown => record(input, context, details);
    return copyWith(tool as { invoke: unknown }, { invoke: wrapper }) as T;
  }
  return tool;
}

function recorded(trail: Trail, name: string, run: Run): Run {
  return (input, context, details) => {
    const callId = details?.toolCall?.callId;
    const args = typeof input === "string" ? trail.attempt(() => argsIn(input)) : input;
    const within = typeof callId === "string" ? { toolCallId: callId } : {};
    return observe(trail, { name, args, context: within, failureIn }, () => run(input, context, details));
  };
}

/** The arguments in the text that a model wrote. */
function argsIn(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return { input: text };
  }
}

/** The text that the framework's own `errorFunction` makes of a failure. */
function failureIn(result: unknown): string | undefined {
  const isFailure = typeof result === "string" && result.startsWith("An error occurred while running the tool.");
  return isFailure ? result : undefined;
}
