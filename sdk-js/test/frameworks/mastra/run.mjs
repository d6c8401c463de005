// Mastra's agent with a scripted model.
import { Agent } from "@mastra/core/agent";
import { createTool } from "@mastra/core/tools";
import { Trail } from "tooltrail";
import { recordTools } from "tooltrail/mastra";
import { z } from "zod";
import * as stage from "../stage.mjs";

const trail = new Trail();
const call = (toolName, n, input) => ({ type: "tool-call", toolCallId: `call_${n}`, toolName, input: JSON.stringify(input) });

/** A model of the specification that the AI SDK and Mastra share. */
function scripted(...turns) {
  const usage = { inputTokens: stage.TOKENS.prompt, outputTokens: stage.TOKENS.completion, totalTokens: 876 };
  const answer = () => {
    const content = turns.shift() ?? [{ type: "text", text: "done" }];
    return { content, finishReason: content[0].type === "text" ? "stop" : "tool-calls", usage, warnings: [] };
  };
  return {
    specificationVersion: "v2", provider: "scripted", modelId: "script-1", supportedUrls: {},
    doGenerate: async () => answer(),
    doStream: async () => {
      const { content, finishReason } = answer();
      const parts = content.flatMap((part) =>
        part.type === "text"
          ? [{ type: "text-start", id: "t" }, { type: "text-delta", id: "t", delta: part.text }, { type: "text-end", id: "t" }]
          : [part]);
      const stream = [{ type: "stream-start", warnings: [] }, ...parts, { type: "finish", finishReason, usage }];
      return { stream: ReadableStream.from(stream) };
    },
  };
}

const named = (id, inputSchema, execute) => createTool({ id, description: "A tool.", inputSchema: z.object(inputSchema), execute });
const agent = (name, tools, ...turns) =>
  new Agent({ id: name, name, instructions: "Go.", model: scripted(...turns), tools: recordTools(trail, tools) });
const lookup = named("lookup", { key: z.string() }, stage.lookup);
const tools = {
  get_weather: named("get_weather", { city: z.string() }, stage.getWeather),
  helper: named("helper", { task: z.string() }, async ({ task }) => {
    const inner = agent("inner", { lookup }, [call("lookup", 9, { key: "k" })]);
    const { toolResults } = await inner.generate(task, { maxSteps: 3 });
    return toolResults[0].payload.result;
  }),
  report: named("report", { title: z.string(), rows: z.array(z.object({ n: z.number() })) }, stage.report),
  boom: named("boom", { n: z.number() }, stage.boom),
  slow: named("slow", {}, (_args, { abortSignal }) => stage.slow(abortSignal)),
};
const run = (turns, more = {}) => agent("concierge", tools, ...turns).generate("go", { maxSteps: 9, ...more });

await stage.record(trail, async () => {
  await run(stage.turns(call));
  await stage.cancelled((abortSignal) => run([[call("slow", 7, {})]], { abortSignal }));
});
