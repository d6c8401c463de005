// LangGraph's agent with a scripted model.
import { AIMessage } from "@langchain/core/messages";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { MemorySaver, interrupt } from "@langchain/langgraph";
import { createAgent, tool } from "langchain";
import { Trail } from "tooltrail";
import { TooltrailHandler } from "tooltrail/langchain";
import { z } from "zod";
import * as stage from "../stage.mjs";

const trail = new Trail();
const call = (name, n, args) => ({ name, args, id: `call_${n}`, type: "tool_call" });

class Scripted extends BaseChatModel {
  constructor(...turns) {
    super({});
    this.turns = turns;
  }
  _llmType() { return "scripted"; }
  getLsParams() { return { ls_model_name: "script-1", ls_model_type: "chat" }; }
  bindTools() { return this; }
  async _generate() {
    const { prompt: input_tokens, completion: output_tokens } = stage.TOKENS;
    const usage_metadata = { input_tokens, output_tokens, total_tokens: input_tokens + output_tokens };
    const calls = this.turns.shift() ?? [];
    const message = new AIMessage({ content: calls.length > 0 ? "" : "done", tool_calls: calls, usage_metadata });
    return { generations: [{ text: "", message }] };
  }
}

const named = (name, schema, run) => tool(run, { name, description: "A tool.", schema: z.object(schema) });
const lookup = named("lookup", { key: z.string() }, stage.lookup);
const tools = [
  named("get_weather", { city: z.string() }, stage.getWeather),
  named("helper", { task: z.string() }, async ({ task }) => {
    const inner = createAgent({ model: new Scripted([call("lookup", 9, { key: "k" })]), tools: [lookup], name: "inner" });
    const { messages } = await inner.invoke({ messages: [{ role: "user", content: task }] });
    return messages.at(-2).content;
  }),
  named("report", { title: z.string(), rows: z.array(z.object({ n: z.number() })) }, stage.report),
  named("count", { to: z.number() }, stage.count),
  named("boom", { n: z.number() }, stage.boom),
  named("slow", {}, (_args, config) => stage.slow(config.signal)),
  named("ask", { question: z.string() }, ({ question }) => interrupt(question)),
];
const handler = new TooltrailHandler(trail);
function run(turns, more = {}) {
  const agent = createAgent({ model: new Scripted(...turns), tools, name: "concierge", checkpointer: new MemorySaver() });
  const config = { callbacks: [handler], configurable: { thread_id: "conv-1" } };
  return agent.invoke({ messages: [{ role: "user", content: "go" }] }, { ...config, ...more });
}

await run(stage.turns(call, [call("count", 6, { to: 3 })])).catch(() => {});
await run([[call("ask", 8, { question: "really?" })]]);
await stage.cancelled((signal) => run([[call("slow", 7, {})]], { signal }));
if (!(await trail.close(30))) throw new Error("not all was sent");
