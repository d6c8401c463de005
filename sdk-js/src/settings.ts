/** Every option of a `Trail`: from its argument, else its environment variable, else its default. */
import type { CaptureMode } from "./capture.js";
import type { Redactor } from "./redact.js";
import { defaultSpoolDir } from "./spool/home.js";

export type SpoolMode = "process" | "fsync" | "memory";
export type WhenFull = "drop" | "raise";

export interface TrailOptions {
  /** The server's URL (`TOOLTRAIL_URL`). Without it nothing is recorded. */
  url?: string | undefined;
  /** An API key with the scope `ingest` (`TOOLTRAIL_API_KEY`). */
  apiKey?: string | undefined;
  /** `process`: events survive a killed process. `fsync`: also a power cut. `memory`: nothing. */
  spool?: SpoolMode | undefined;
  /** Folder of the spool. Default: `tooltrail` in the user's state directory. */
  spoolDir?: string | undefined;
  /** Maximum size of one spool, for all its processes. Default: 256 MiB. */
  maxBytes?: number | undefined;
  /** Maximum age of waiting events, in days. Default: 7. */
  maxAgeDays?: number | undefined;
  /** `raise`: a tool that cannot be recorded does not run. Default: `drop`. */
  whenFull?: WhenFull | undefined;
  /** What is recorded of arguments and results: everything, their structure, or nothing. */
  capture?: CaptureMode | undefined;
  /** Maximum size of arguments or result as JSON, in bytes. Default: 256 KiB. */
  maxPayloadBytes?: number | undefined;
  /** Seconds to send events when the process ends. Default: 2. */
  exitTimeout?: number | undefined;
  /** `true` for the built-in rules, `false` for none, or a `Redactor`. */
  redact?: Redactor | boolean | undefined;
}

export interface Settings {
  url: string;
  apiKey: string;
  spool: SpoolMode;
  spoolDir: string;
  maxBytes: number;
  maxAgeDays: number;
  whenFull: WhenFull;
  capture: CaptureMode;
  maxPayloadBytes: number;
  exitTimeout: number;
}

/**
 * Reads all options. Throws TypeError for an invalid argument, which is a bug of the program; an
 * invalid environment variable must not stop a host, so `warn` is told and the default applies.
 */
export function readSettings(given: TrailOptions, warn: (message: string) => void): Settings {
  function read<T>(argument: T | undefined, variable: string, parse: (value: unknown) => T, otherwise: T): T {
    if (argument !== undefined) return parse(argument);
    const text = (process.env[variable] ?? "").trim();
    if (text === "") return otherwise;
    try {
      return parse(text);
    } catch (error) {
      warn(`${variable} is ignored: ${error instanceof Error ? error.message : "invalid"}`);
      return otherwise;
    }
  }
  return {
    url: read(given.url, "TOOLTRAIL_URL", String, ""),
    apiKey: read(given.apiKey, "TOOLTRAIL_API_KEY", String, ""),
    spool: read(given.spool, "TOOLTRAIL_SPOOL", oneOf("process", "fsync", "memory"), "process"),
    spoolDir: read(given.spoolDir, "TOOLTRAIL_SPOOL_DIR", String, "") || defaultSpoolDir(),
    maxBytes: read(given.maxBytes, "TOOLTRAIL_MAX_BYTES", positive, 256 * 1024 * 1024),
    maxAgeDays: read(given.maxAgeDays, "TOOLTRAIL_MAX_AGE_DAYS", positive, 7),
    whenFull: read(given.whenFull, "TOOLTRAIL_WHEN_FULL", oneOf("drop", "raise"), "drop"),
    capture: read(given.capture, "TOOLTRAIL_CAPTURE", oneOf("full", "shape", "none"), "full"),
    maxPayloadBytes: read(given.maxPayloadBytes, "TOOLTRAIL_MAX_PAYLOAD_BYTES", positive, 256 * 1024),
    exitTimeout: read(given.exitTimeout, "TOOLTRAIL_EXIT_TIMEOUT", positive, 2),
  };
}

function oneOf<T extends string>(...words: T[]): (value: unknown) => T {
  return (value) => {
    const word = words.find((each) => each === value);
    if (word === undefined) throw new TypeError(`expected one of ${words.join(", ")}`);
    return word;
  };
}

function positive(value: unknown): number {
  const number = Number(value);
  if (!(number > 0 && number < Infinity)) throw new TypeError("expected a number greater than 0");
  return number;
}
