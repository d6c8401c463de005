/**
 * Which process owns a home, and whether it still runs: the rule that the SDKs of all languages
 * keep. docs/spool.md describes it; the Python SDK's `tooltrail.spool.owner` is the same.
 */
import { readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";

export const OWNER = "owner";

/** The namespace of processes that are in no container: a constant of Linux. */
const HOSTS_OWN = "pid:[4026531836]";
const MEMBERS = ["pid", "started", "boot", "namespace", "host", "machine"] as const;

export type Owner = Record<(typeof MEMBERS)[number], string>;

/** Whether a process with this pid and start runs here. */
export type Runs = (pid: number, started: string) => boolean;

let place: Omit<Owner, "pid" | "started"> | undefined;

/** The content of this process's `owner` files. */
export function thisProcess(): Owner {
  place ??= readPlace();
  return { pid: String(process.pid), started: statOf(process.pid).started, ...place };
}

/** Writes the file of a home that this process makes. */
export function writeOwner(home: string): void {
  writeFileSync(join(home, OWNER), `${JSON.stringify(thisProcess())}\n`, { mode: 0o600 });
}

/** Reads who owns a home; undefined if it has no such file, or an unreadable one. */
export function readOwner(home: string): Owner | undefined {
  const text = textOf(join(home, OWNER));
  try {
    const stated = JSON.parse(text) as unknown;
    if (typeof stated !== "object" || stated === null) return undefined;
    const owner = stated as Owner;
    return MEMBERS.every((name) => typeof owner[name] === "string") ? owner : undefined;
  } catch {
    return undefined;
  }
}

/** Whether the owner's process has certainly ended, as a process that is `here` can tell. */
export function hasEnded(owner: Owner, here: Owner, isRunning: Runs): boolean {
  if (!/^\d{1,15}$/.test(owner.pid)) return false;
  const pid = Number(owner.pid);
  if (here.boot === "" || owner.boot === "") {
    const isHere = here.boot === owner.boot && here.host !== "" && owner.host === here.host;
    return isHere && !isRunning(pid, "");
  }
  if (owner.boot === here.boot) {
    return owner.namespace === here.namespace && !isRunning(pid, owner.started);
  }
  return (
    here.machine !== "" &&
    owner.machine === here.machine &&
    owner.host === here.host &&
    owner.namespace.startsWith(HOSTS_OWN) &&
    here.namespace.startsWith(HOSTS_OWN)
  );
}

/**
 * Whether the process with this pid and start runs; with an empty start, any of this pid. A process
 * that has ended and waits for its parent does not run.
 */
export function runs(pid: number, started: string): boolean {
  const stat = statOf(pid);
  if (stat.started !== "" && started !== "") {
    const isEnded = (stat.state === "Z" || stat.state === "X") && stat.threads <= 1;
    return stat.started === started && !isEnded;
  }
  try {
    process.kill(pid, 0); // `/proc` may hide the processes of others
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

/**
 * Whether a thread of this process still holds the home of this thread or process: a thread keeps
 * its `owner` file open, and the file is closed with it. True where that cannot be seen.
 */
export function isHeldHere(home: string): boolean {
  try {
    const held = join(home, OWNER);
    return readdirSync("/proc/self/fd").some((name) => linkOf(`/proc/self/fd/${name}`) === held);
  } catch {
    return true;
  }
}

function statOf(pid: number): { state: string; threads: number; started: string } {
  const text = textOf(`/proc/${pid}/stat`);
  // The name of the program is in brackets, and may hold any character.
  const fields = text.slice(text.lastIndexOf(")") + 1).trim().split(" ");
  const [state, threads, started] = [fields[0], fields[17], fields[19]];
  if (!state || !threads || !started) return { state: "", threads: 0, started: "" };
  return { state, threads: Number(threads), started };
}

function readPlace(): Omit<Owner, "pid" | "started"> {
  const machine = textOf("/etc/machine-id").trim();
  if (process.platform !== "linux") return { boot: "", namespace: "", host: hostname(), machine };
  const boot = textOf("/proc/sys/kernel/random/boot_id").trim();
  const pids = linkOf("/proc/self/ns/pid");
  const times = linkOf("/proc/self/ns/time"); // since Linux 5.6; the start of a process is relative to it
  if (linkOf("/proc/self") !== String(process.pid) || boot === "" || pids === "") {
    return { boot: "", namespace: "", host: "", machine };
  }
  return { boot, namespace: times === "" ? pids : `${pids} ${times}`, host: hostname(), machine };
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}
