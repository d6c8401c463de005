import { generateText, tool, type LanguageModel } from "ai";
import { Trail } from "tooltrail";
import { recordTools } from "tooltrail/ai";
import { z } from "zod";

declare const model: LanguageModel;
const getWeather = tool({ inputSchema: z.object({ city: z.string() }), execute: async ({ city }) => ({ city, celsius: 21.5 }) });
const { toolResults } = await generateText({ model, tools: recordTools(new Trail(), { getWeather }), prompt: "go" });
for (const result of toolResults) if (!result.dynamic) result.output.celsius satisfies number;
