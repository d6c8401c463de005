// A task of a server from npm, as the client of its SDK sees it: each message is a line of JSON.
//
//     node mcp_task.mjs <folder with node_modules> <the server's file>
//
// The last line is the result. With "cancel" after it, the task is cancelled at its first poll.

import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, server, cancel] = process.argv.slice(2);
const { resolve } = createRequire(`${folder}/package.json`);
const load = (name) => import(pathToFileURL(resolve(`@modelcontextprotocol/sdk/${name}`)));
const { Client } = await load("client/index.js");
const { StdioClientTransport } = await load("client/stdio.js");

const client = new Client({ name: "task", version: "1" }, { capabilities: { tasks: {} } });
const command = { command: process.execPath, args: [server, "stdio"], stderr: "ignore" };
await client.connect(new StdioClientTransport(command));
await client.listTools(); // says which tools are tasks
const tasks = client.experimental.tasks;
const call = { name: "simulate-research-query", arguments: { topic: "tea" } };
for await (const message of tasks.callToolStream(call)) {
  console.log(JSON.stringify(message));
  if (cancel && message.type === "taskStatus") {
    const task = await tasks.cancelTask(message.task.taskId);
    console.log(JSON.stringify({ type: "taskStatus", task }));
    break;
  }
}
await client.close();
