// One mode of the benchmark, in a process of its own. `calls` times each call of a loop, and prints µs;
// `print` writes the number of each call that has returned, for the kills; `outage` makes calls while the
// receiver is away, and ends when it has tried to send them.
//
//     node run.mjs calls|print|outage MODE URL FOLDER COUNT
import { hash, randomUUID } from "node:crypto";
import { writeSync, openSync, closeSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as rest, setTimeout as sleep } from "node:timers/promises";
import { crc32 } from "node:zlib";
import { ARGS, RESULT } from "./payloads.mjs";

const [, , what, mode, url, folder, count] = process.argv;
const CALLS = Number(count);
const KEY = "tt_0198c0de-0000-7000-8000-000000000001_bench_secret_crc";
const search = () => RESULT;
const SECRETS = /pass|secret|token/i; // a few words: the least that a search can be

const modes = {
  bare: () => [search, async () => {}],
  /** What nothing durable can do without: both events as JSON, each written to a file. */
  floor: () => {
    const file = openSync(join(folder, "floor"), "a");
    const tool = (args) => {
      writeSync(file, `${JSON.stringify({ type: "toolExecutionStart", tool: "search", args })}\n`);
      const result = search(args);
      writeSync(file, `${JSON.stringify({ type: "toolExecutionEnd", tool: "search", output: result })}\n`);
      return result;
    };
    return [tool, async () => { closeSync(file); }];
  },
  /** The floor with what each event must have: ids, the digest of the arguments, a check sum, and no secret. */
  format: () => {
    const file = openSync(join(folder, "format"), "a");
    const write = (event) => {
      const text = JSON.stringify(event);
      const line = Buffer.from(SECRETS.test(text) ? "null" : text);
      writeSync(file, Buffer.concat([line, Buffer.from(`\t${crc32(line).toString(16).padStart(8, "0")}\n`)]));
    };
    const tool = (args) => {
      const shared = { tool: "search", id: randomUUID(), call: hash("sha256", JSON.stringify({ args, tool: "search" })), at: new Date().toISOString() };
      write({ type: "toolExecutionStart", event: randomUUID(), ...shared, args });
      const result = search(args);
      write({ type: "toolExecutionEnd", event: randomUUID(), ...shared, output: result });
      return result;
    };
    return [tool, async () => { closeSync(file); }];
  },
  tooltrail: () => tooltrail({}),
  "tooltrail-plain": () => tooltrail({ redact: false }),
  opentelemetry: async () => {
    const { BatchSpanProcessor, NodeTracerProvider } = await import("@opentelemetry/sdk-trace-node");
    const { OTLPTraceExporter } = await import("@opentelemetry/exporter-trace-otlp-http");
    const exporter = new OTLPTraceExporter({ url: `${url}/v1/traces` });
    const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(exporter)] });
    provider.register();
    const tracer = provider.getTracer("bench");
    // As instrumentations do: a span for each call, arguments and result as JSON attributes.
    const tool = (args) =>
      tracer.startActiveSpan("execute_tool search", (span) => {
        span.setAttribute("gen_ai.operation.name", "execute_tool");
        span.setAttribute("gen_ai.tool.name", "search");
        span.setAttribute("gen_ai.tool.call.arguments", JSON.stringify(args));
        const result = search(args);
        span.setAttribute("gen_ai.tool.call.result", JSON.stringify(result));
        span.end();
        return result;
      });
    return [tool, () => provider.shutdown().catch(() => {})];
  },
};

async function tooltrail(options) {
  const { Trail } = await import("tooltrail");
  const trail = new Trail({ url, apiKey: KEY, spoolDir: folder, exitTimeout: 60, ...options });
  return [trail.tool(search), () => trail.close(60)];
}

const [tool, close] = await modes[mode]();
if (what === "calls") {
  for (let n = 0; n < 500; n++) tool(ARGS);
  const took = new Float64Array(CALLS);
  for (let n = 0; n < CALLS; n++) {
    const began = performance.now();
    tool(ARGS);
    took[n] = performance.now() - began;
    if (n % 50 === 49) await rest(); // both send in this thread, as in a real executor
  }
  took.sort();
  const at = (part) => took[Math.floor(CALLS * part)] * 1000;
  await close();
  console.log(JSON.stringify({ p50: at(0.5), p99: at(0.99), mean: (took.reduce((sum, one) => sum + one, 0) / CALLS) * 1000 }));
} else if (what === "print") {
  for (let n = 0; n < CALLS; n++) {
    tool(ARGS);
    writeSync(1, `${n}\n`);
    await sleep(1);
  }
} else {
  for (let n = 0; n < CALLS; n++) {
    tool(ARGS);
    await sleep(5);
  }
  writeSync(1, "called\n");
  await sleep(Number(process.argv[7]) * 1000); // how long the receiver stays away, and some time after
  await close();
}
