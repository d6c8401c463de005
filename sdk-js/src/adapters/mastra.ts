/** Mastra (package `@mastra/core`): records the tools of agents and workflows. */
import type { TraceContext } from "../scope.js";
import type { Trail } from "../trail.js";
import { copyWith, observe } from "./wrapping.js";

/** What Mastra tells a tool's function, beside its arguments. */
interface Execution {
  toolCallId?: unknown;
  agentId?: unknown;
  threadId?: unknown;
  agent?: { agentId?: unknown; toolCallId?: unknown; threadId?: unknown } | undefined;
  workflow?: { workflowId?: unknown; runId?: unknown } | undefined;
}

/**
 * The same tools, recorded: `new Agent({ …, tools: recordTools(trail, { getWeather }) })`. A call's tool is
 * named by its `id`, its agent and thread are those that Mastra tells. Tools that run elsewhere are
 * returned as they are.
 */
export function recordTools<T extends object>(trail: Trail, tools: T): T {
  const recorded = Object.entries(tools).map(([name, tool]) => [name, recordedTool(trail, name, tool)] as const);
  return Object.fromEntries(recorded) as T;
}

function recordedTool(trail: Trail, member: string, tool: unknown): unknown {
  const { execute, id } = tool as { execute?: unknown; id?: unknown };
  if (typeof execute !== "function") return tool;
  const name = typeof id === "string" ? id : member;
  const recorded = (args: unknown, execution?: Execution): unknown => {
    const context = contextOf(execution ?? {});
    return observe(trail, { name, args, context, failureIn }, () => execute.call(tool, args, execution) as unknown);
  };
  return copyWith(tool as { execute: unknown }, { execute: recorded });
}

function contextOf({ agent, workflow, ...flat }: Execution): TraceContext {
  return {
    agent: textOf(agent?.agentId ?? flat.agentId),
    toolCallId: textOf(agent?.toolCallId ?? flat.toolCallId),
    runId: textOf(agent?.threadId ?? flat.threadId ?? workflow?.runId),
    workflowId: textOf(workflow?.workflowId),
  };
}

/** Mastra returns what breaks a tool's schemas instead of throwing it. */
function failureIn(result: unknown): string | undefined {
  if (typeof result !== "object" || result === null) return undefined;
  const { error, message, validationErrors } = result as Record<string, unknown>;
  return error === true && validationErrors !== undefined && typeof message === "string" ? message : undefined;
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}
