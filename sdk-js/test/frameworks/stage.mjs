// What the scripts of all frameworks have in common: the trail, and the tools' bodies. They make the same
// calls: two of get_weather at once, helper that asks lookup, report with a structure, count that yields
// where the framework has such tools, boom that throws, slow that is cancelled.
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";

export const WEATHER = { celsius: 22.5 };
export const ROWS = [{ n: 1 }, { n: 2 }];
/** The tokens of each answer of a scripted model. */
export const TOKENS = { prompt: 812, completion: 64 };
const CONTEXT = { agent: "concierge", model: "script-1", runId: "conv-1" };

const running = new EventTarget();

export const getWeather = async () => WEATHER;
export const lookup = async ({ key }) => `value of ${key}`;
export const report = async ({ title, rows }) => ({ title, rows });
export const boom = async ({ n }) => { throw new RangeError(`boom ${n}`); };
export async function* count({ to }) {
  for (let n = 1; n <= to; n++) yield n;
}

/** Takes long, unless it is aborted. */
export async function slow(signal) {
  running.dispatchEvent(new Event("slow"));
  await sleep(60_000, undefined, { signal });
  return "never";
}

/** Starts a run that calls `slow`, and aborts it when that runs. */
export async function cancelled(start) {
  const controller = new AbortController();
  const isRunning = once(running, "slow");
  const run = Promise.resolve(start(controller.signal)).then(() => {}, () => {});
  await isRunning;
  controller.abort();
  await run;
}

/** What the model asks for, turn by turn. `call` makes a call in the framework's form. */
export const turns = (call, ...more) => [
  [call("get_weather", 1, { city: "London" }), call("get_weather", 2, { city: "Paris" })],
  [call("helper", 3, { task: "look" })],
  [call("report", 4, { title: "T", rows: ROWS })],
  ...more,
  [call("boom", 5, { n: 7 })],
];

/** Runs a script in a trace with what a framework does not tell, and sends what was recorded. */
export async function record(trail, script, { within = CONTEXT } = {}) {
  await trail.trace({ traceId: "run-1", ...within }, script);
  if (!(await trail.close(30))) throw new Error("not all was sent");
}
