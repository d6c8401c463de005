import { Agent } from "@mastra/core/agent";
import { createTool } from "@mastra/core/tools";
import { Trail } from "tooltrail";
import { recordTools } from "tooltrail/mastra";
import { z } from "zod";

const getWeather = createTool({
  id: "get_weather", description: "The weather.", inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => ({ city, celsius: 21.5 }),
});
new Agent({ id: "a", name: "a", instructions: "Go.", model: "openai/gpt-5", tools: recordTools(new Trail(), { getWeather }) });
