/** Reads the JSON of a `CallToolResult` as the Python SDK does (`tooltrail.mcp_results`). */
import type { Plain } from "./plain.js";

/** `waiting` (for input) and `working` (as a task) do not end a call. */
export type CallState = "waiting" | "working" | "cancelled";

type Members = Readonly<Record<string, unknown>>;

export interface McpResult {
  isError: boolean;
  /** The first text of the content, or what a task says. */
  message: string;
  state: CallState | undefined;
  taskId: string | undefined;
}

/** What a result says of its call. A value that is no result has ended well. */
export function readMcpResult(document: Plain | undefined): McpResult {
  const result = membersOf(document);
  if (!result) return { isError: false, message: "", state: undefined, taskId: undefined };
  const task = taskIn(result);
  const hasFailed = task?.["status"] === "failed";
  const said = task?.["statusMessage"];
  return {
    isError: result["isError"] === true || hasFailed,
    message: firstText(result["content"]) ?? (typeof said === "string" ? said : ""),
    state: hasFailed ? undefined : stateOf(result, task),
    taskId: typeof task?.["taskId"] === "string" ? task["taskId"] : undefined,
  };
}

/** The state that a task's status means; undefined once it has ended with a result. */
export function stateOfTask(status: unknown): CallState | undefined {
  if (status === "cancelled") return "cancelled";
  if (status === "completed" || status === "failed") return undefined;
  return status === "input_required" ? "waiting" : "working";
}

function stateOf(result: Members, task: Members | undefined): CallState | undefined {
  if (task) return stateOfTask(task["status"]) ?? "working"; // its result comes later
  const asks = result["resultType"] === "input_required" && ("inputRequests" in result || "requestState" in result);
  return asks ? "waiting" : undefined;
}

/** The task in the place of a result: in MCP 2025-11-25 its member `task`, in 2026-07-28 itself. */
function taskIn(result: Members): Members | undefined {
  const task = membersOf(result["task"]);
  if (result["resultType"] === "task") return task ?? result;
  return typeof task?.["taskId"] === "string" && !("content" in result) ? task : undefined;
}

function firstText(content: unknown): string | undefined {
  if (!Array.isArray(content)) return undefined;
  for (const block of content as unknown[]) {
    const text = membersOf(block)?.["text"];
    if (typeof text === "string") return text;
  }
  return undefined;
}

function membersOf(value: unknown): Members | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Members) : undefined;
}
