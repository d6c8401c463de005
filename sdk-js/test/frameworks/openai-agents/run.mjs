// OpenAI Agents with a scripted model.
import { Agent, Runner, Usage, tool } from "@openai/agents";
import { Trail } from "tooltrail";
import { recordTool } from "tooltrail/openai-agents";
import { z } from "zod";
import * as stage from "../stage.mjs";

const trail = new Trail();
const call = (name, n, args) => ({ type: "function_call", callId: `call_${n}`, name, status: "completed", arguments: JSON.stringify(args) });

class Scripted {
  #turns;
  constructor(...turns) { this.#turns = turns; }
  async getResponse() {
    const done = { type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text: "value of k" }] };
    return { usage: new Usage({}), output: this.#turns.shift() ?? [done] };
  }
}

const recorded = (options) => tool(recordTool(trail, { description: "A tool.", ...options }));
const lookup = recorded({ name: "lookup", parameters: z.object({ key: z.string() }), execute: stage.lookup });
const inner = new Agent({ name: "inner", model: new Scripted([call("lookup", 9, { key: "k" })]), tools: [lookup] });
const agent = (...turns) => new Agent({
  name: "concierge",
  model: new Scripted(...turns),
  tools: [
    recorded({ name: "get_weather", parameters: z.object({ city: z.string() }), execute: stage.getWeather }),
    recordTool(trail, inner.asTool({ toolName: "helper", toolDescription: "Asks another agent.", parameters: z.object({ task: z.string() }) })),
    recorded({ name: "report", parameters: z.object({ title: z.string(), rows: z.array(z.object({ n: z.number() })) }), execute: stage.report }),
    recorded({ name: "boom", parameters: z.object({ n: z.number() }), execute: stage.boom }),
    recorded({ name: "slow", parameters: z.object({}), execute: (_args, _context, details) => stage.slow(details.signal) }),
    recordTool(trail, tool({ name: "excused", description: "A tool.", parameters: z.object({}), execute: () => stage.boom({ n: 8 }) })),
  ],
});
const runner = new Runner({ tracingDisabled: true });

await stage.record(trail, async () => {
  await runner.run(agent(...stage.turns(call, [call("excused", 8, {})])), "go");
  await stage.cancelled((signal) => runner.run(agent([call("slow", 7, {})]), "go", { signal }));
});
