import { Agent, tool } from "@openai/agents";
import { Trail } from "tooltrail";
import { recordTool } from "tooltrail/openai-agents";
import { z } from "zod";

const trail = new Trail();
const options = { name: "get_weather", description: "The weather.", parameters: z.object({ city: z.string() }) };
const weather = tool(recordTool(trail, { ...options, execute: async ({ city }: { city: string }) => `${city}: 21.5` }));
const inner = new Agent({ name: "inner" });
new Agent({ name: "concierge", tools: [weather, recordTool(trail, inner.asTool({ toolName: "helper", toolDescription: "Asks." }))] });
