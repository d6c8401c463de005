// The AI SDK's generateText with a scripted model.
import { generateText, isStepCount, tool } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { Trail } from "tooltrail";
import { recordTools } from "tooltrail/ai";
import { z } from "zod";
import * as stage from "../stage.mjs";

const trail = new Trail();
const call = (toolName, n, input) => ({ type: "tool-call", toolCallId: `call_${n}`, toolName, input: JSON.stringify(input) });

function scripted(...turns) {
  const usage = {
    inputTokens: { total: stage.TOKENS.prompt, noCache: stage.TOKENS.prompt, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: stage.TOKENS.completion, text: stage.TOKENS.completion, reasoning: 0 },
  };
  return new MockLanguageModelV4({
    modelId: "script-1",
    doGenerate: async () => {
      const content = turns.shift() ?? [{ type: "text", text: "done" }];
      return { content, finishReason: { unified: content[0].type === "text" ? "stop" : "tool-calls", raw: undefined }, usage, warnings: [] };
    },
  });
}

const lookup = tool({ inputSchema: z.object({ key: z.string() }), execute: stage.lookup });
const tools = recordTools(trail, {
  get_weather: tool({ inputSchema: z.object({ city: z.string() }), execute: stage.getWeather }),
  helper: tool({
    inputSchema: z.object({ task: z.string() }),
    execute: async ({ task }) => {
      const inner = { model: scripted([call("lookup", 9, { key: "k" })]), tools: recordTools(trail, { lookup }) };
      return (await generateText({ ...inner, prompt: task, stopWhen: isStepCount(3) })).steps[0].toolResults[0].output;
    },
  }),
  report: tool({ inputSchema: z.object({ title: z.string(), rows: z.array(z.object({ n: z.number() })) }), execute: stage.report }),
  count: tool({ inputSchema: z.object({ to: z.number() }), execute: stage.count }),
  boom: tool({ inputSchema: z.object({ n: z.number() }), execute: stage.boom }),
  slow: tool({ inputSchema: z.object({}), execute: (_args, { abortSignal }) => stage.slow(abortSignal) }),
});
const run = (turns, more = {}) => generateText({ model: scripted(...turns), tools, prompt: "go", stopWhen: isStepCount(9), ...more });

await stage.record(trail, async () => {
  await run(stage.turns(call, [call("count", 6, { to: 3 })]));
  await stage.cancelled((abortSignal) => run([[call("slow", 7, {})]], { abortSignal }));
});
