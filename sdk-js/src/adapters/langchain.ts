/**
 * LangChain.js and LangGraph.js: a callback handler. It has the members of `BaseCallbackHandler` that
 * LangChain reads, and imports nothing of it.
 */
import type { Call } from "../recording.js";
import { scopes, type TraceContext } from "../scope.js";
import type { Trail } from "../trail.js";
import { ReportedError } from "./wrapping.js";

type Metadata = Record<string, unknown>;
type Usage = { prompt: number; completion: number } | undefined;

/** A run that has begun and not ended: of a chain, an agent or a tool. */
interface Run {
  outermost: string;
  /** The call that encloses what runs in it. */
  call: Call | undefined;
}

interface Message {
  content?: unknown;
  artifact?: unknown;
  status?: unknown;
  tool_call_id?: unknown;
  tool_calls?: { id?: unknown }[];
  usage_metadata?: { input_tokens?: unknown; output_tokens?: unknown };
}

/**
 * Records the tools of the runs that it is a callback of: `agent.invoke(input, { callbacks: [handler] })`. One
 * serves any number of runs.
 *
 * The trace is the outermost run, the agent its `lc_agent_name`, and the conversation the `thread_id` or
 * `session_id` of the configuration. Throws nothing into the run. A tool that interrupts the run did
 * not do its work: it is cancelled.
 */
export class TooltrailHandler {
  readonly name = "tooltrail";
  /** LangChain waits for these methods, so that a call is recorded before its tool runs. */
  readonly awaitHandlers = true;
  readonly raiseError: boolean;
  readonly ignoreLLM = false;
  readonly ignoreChain = false;
  readonly ignoreAgent = false;
  readonly ignoreRetriever = true;
  readonly ignoreCustomEvent = true;
  readonly #trail: Trail;
  readonly #runs = new Map<string, Run>();
  /** Of each outermost run: the model that was asked last, and the tokens of answers by tool call. */
  readonly #models = new Map<string, { model: string | undefined; usage: Map<string, Usage> }>();

  constructor(trail: Trail) {
    this.#trail = trail;
    this.raiseError = trail.settings.whenFull === "raise"; // SpoolFullError stops the tool
  }

  /** The same handler: LangChain copies those that it hands on. */
  copy(): this {
    return this;
  }

  handleChainStart(_chain: unknown, _inputs: unknown, runId: string, parentRunId?: string): void {
    const around = this.#runs.get(parentRunId ?? "");
    this.#runs.set(runId, { outermost: around?.outermost ?? runId, call: around?.call });
  }

  handleChainEnd(_outputs: unknown, runId: string): void {
    this.#forget(runId);
  }

  handleChainError(_error: unknown, runId: string): void {
    this.#forget(runId);
  }

  handleChatModelStart(
    _model: unknown, _messages: unknown, _runId: string, parentRunId?: string, _extra?: unknown, _tags?: string[],
    metadata?: Metadata,
  ): void {
    const model = textOf(metadata?.["ls_model_name"]);
    const outermost = this.#runs.get(parentRunId ?? "")?.outermost;
    if (outermost === undefined || model === undefined) return;
    this.#asked(outermost).model = model;
  }

  handleLLMEnd(output: { generations?: unknown }, _runId: string, parentRunId?: string): void {
    this.#trail.attempt(() => {
      const outermost = this.#runs.get(parentRunId ?? "")?.outermost;
      if (outermost === undefined) return;
      const { usage } = this.#asked(outermost);
      for (const { message } of (output.generations as { message?: Message }[][]).flat()) {
        const counts = usageOf(message);
        for (const { id } of (counts && message?.tool_calls) ?? []) if (typeof id === "string") usage.set(id, counts);
      }
    });
  }

  handleToolStart(
    tool: { id?: unknown[] } | undefined, input: string, runId: string, parentRunId?: string, _tags?: string[],
    metadata?: Metadata, runName?: string, toolCallId?: string,
  ): void {
    this.#trail.attempt(() => {
      const around = this.#runs.get(parentRunId ?? "");
      const outermost = around?.outermost ?? parentRunId ?? runId;
      const asked = this.#models.get(outermost);
      const context: TraceContext = {
        // Of the outermost run, unless the program is in a trace of its own.
        traceId: around?.call?.traceId ?? (scopes.getStore() ? undefined : outermost.replaceAll("-", "")),
        parentInvocationId: around?.call?.id,
        agent: textOf(metadata?.["lc_agent_name"]),
        model: asked?.model,
        runId: textOf(metadata?.["thread_id"]) ?? textOf(metadata?.["session_id"]),
        toolCallId,
        modelUsage: asked?.usage.get(toolCallId ?? ""),
      };
      const name = runName ?? textOf(tool?.id?.at(-1)) ?? "tool";
      const call = this.#trail.trace(context, () => this.#trail.begin(name, argsIn(input)));
      this.#runs.set(runId, { outermost, call });
    });
  }

  handleToolEnd(output: unknown, runId: string): void {
    const call = this.#runs.get(runId)?.call;
    this.#runs.delete(runId);
    this.#trail.attempt(() => {
      const message = output as Message | null | undefined;
      if (typeof message?.tool_call_id !== "string") call?.finish(output);
      else if (message.status === "error") call?.fail(new ReportedError(String(message.content)));
      else call?.finish(valueIn(message.artifact ?? message.content));
    });
  }

  handleToolError(error: unknown, runId: string): void {
    const call = this.#runs.get(runId)?.call;
    this.#runs.delete(runId);
    const name = (error as { name?: unknown } | undefined)?.name;
    const isInterrupt = name === "GraphInterrupt" || name === "NodeInterrupt";
    call?.fail(isInterrupt ? new DOMException("the tool interrupted the run", "AbortError") : error);
  }

  #asked(outermost: string): { model: string | undefined; usage: Map<string, Usage> } {
    const known = this.#models.get(outermost) ?? { model: undefined, usage: new Map<string, Usage>() };
    this.#models.set(outermost, known);
    return known;
  }

  #forget(runId: string): void {
    this.#runs.delete(runId);
    this.#models.delete(runId);
  }
}

function usageOf(message: Message | undefined): Usage {
  const { input_tokens: prompt, output_tokens: completion } = message?.usage_metadata ?? {};
  if (typeof prompt !== "number" || typeof completion !== "number" || prompt + completion === 0) return undefined;
  return { prompt, completion };
}

/** The arguments in the text that LangChain makes of them. */
function argsIn(input: string): unknown {
  const value = valueIn(input);
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : { input: value };
}

/** The object or list in a text that a framework made of it; any other value as it is. */
function valueIn(value: unknown): unknown {
  if (typeof value !== "string" || !/^\s*[[{]/.test(value)) return value;
  try {
    return JSON.parse(value) as unknown;
  } catch {
    return value;
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}
