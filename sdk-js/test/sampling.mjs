// A part of what tests repeat: that of `.ci/run`, chosen by its seed. Without it, and in `.ci/full`, everything.
import { createHash } from "node:crypto";

const sample = process.env["TOOLTRAIL_SAMPLE"] ?? "";

/** What a fuzz starts from: the sample's seed, or a new one. Print it when a test fails. */
export const SEED = sample === "" ? Math.floor(Math.random() * 2 ** 31) : Number(sample);

/** In a sample the smaller number, else the larger one. */
export const bounded = (fewer, all) => (sample === "" ? all : fewer);

/** In a sample one of the things, by the seed and the name; else all. */
export function some(name, things) {
  const digest = createHash("sha256").update(`${sample} ${name}`).digest();
  return sample === "" ? things : [things[digest.readUInt32BE() % things.length]];
}
