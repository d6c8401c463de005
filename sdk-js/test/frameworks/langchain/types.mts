import { createAgent } from "langchain";
import { Trail } from "tooltrail";
import { TooltrailHandler } from "tooltrail/langchain";

const agent = createAgent({ model: "openai:gpt-5", tools: [] });
await agent.invoke({ messages: [{ role: "user", content: "go" }] }, { callbacks: [new TooltrailHandler(new Trail())] });
