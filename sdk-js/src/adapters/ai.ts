/** The AI SDK of Vercel (package `ai`): records the tools that are given to `generateText`, `streamText` … */
import type { Trail } from "../trail.js";
import { copyWith, observe } from "./wrapping.js";

interface Options {
  toolCallId?: unknown;
}

/**
 * The same tools, recorded: `generateText({ model, tools: recordTools(trail, { getWeather }), prompt })`. A
 * call's tool is named by its member. Tools without `execute` are returned as they are.
 */
export function recordTools<T extends object>(trail: Trail, tools: T): T {
  const recorded = Object.entries(tools).map(([name, tool]) => [name, recordedTool(trail, name, tool)] as const);
  return Object.fromEntries(recorded) as T;
}

function recordedTool(trail: Trail, name: string, tool: unknown): unknown {
  const { execute } = tool as { execute?: unknown };
  if (typeof execute !== "function") return tool;
  const recorded = (args: unknown, options?: Options): unknown => {
    const id = options?.toolCallId;
    const context = typeof id === "string" ? { toolCallId: id } : {};
    return observe(trail, { name, args, context }, () => execute.call(tool, args, options) as unknown);
  };
  return copyWith(tool as { execute: unknown }, { execute: recorded });
}
