/** The folders of a spool: one root for each server and key, in it one home for each thread. */
import * as fs from "node:fs";
import { homedir } from "node:os";
import { basename, join } from "node:path";
import { sha256 } from "../canonical.js";
import { salvage, sealLine } from "./lines.js";
import { declaredIn, type Loss } from "./losses.js";
import { randomHex } from "../uuid.js";
import { hasEnded, isHeldHere, OWNER, readOwner, runs, thisProcess, writeOwner } from "./owner.js";

export const NOTE = "note";
/** The note of a home of the Python SDK, whose process holds this file as a lock. */
const LOCK = "lock";
const NOTE_BYTES = 4096; // allocated with the home: a full disk still allows overwriting them
const TAKEN = ".taken";
export const REJECTED = "rejected";
export const ORIGIN = "origin.json";

/** The public part of a key that names it: `tt_<tenant>_<key id>_<secret>_<crc>`. */
export function keyId(apiKey: string): string {
  const parts = apiKey.split("_");
  if (parts.length === 5 && parts[0] === "tt") return parts[2] ?? "";
  return `sha256-${sha256(apiKey).slice(0, 16)}`;
}

/** The default folder of spools: `tooltrail` in the user's state directory. */
export function defaultSpoolDir(): string {
  const state = process.env["XDG_STATE_HOME"];
  return join(state === undefined || state === "" ? join(homedir(), ".local", "state") : state, "tooltrail");
}

/** Makes the root for this server and key if needed. Throws if it cannot, or another user owns it. */
export function makeRoot(spoolDir: string, url: string, apiKey: string): string {
  const address = url.replace(/\/+$/, "");
  const root = join(spoolDir, sha256(`${address}\n${keyId(apiKey)}`).slice(0, 16));
  fs.mkdirSync(root, { mode: 0o700, recursive: true });
  if (process.geteuid && fs.statSync(root).uid !== process.geteuid()) {
    throw new Error(`${root} belongs to another user`);
  }
  const origin = join(root, ORIGIN);
  if (!fs.existsSync(origin)) {
    const draft = join(root, `.${ORIGIN}.${randomHex(8)}`);
    fs.writeFileSync(draft, JSON.stringify({ url: address, key_id: keyId(apiKey) }));
    fs.renameSync(draft, origin);
  }
  return fs.realpathSync(root);
}

/** An own home: its path, and the open files that belong to it. */
export interface Home {
  path: string;
  /** Kept open: shows the other threads of this process that this one runs. */
  owner: number;
  note: number;
}

/** Makes a home. It has its owner and its note before it gets its name. */
export function makeHome(root: string, name: string): Home {
  const draft = join(root, `.${name}`);
  fs.mkdirSync(draft, { mode: 0o700, recursive: true });
  writeOwner(draft);
  const owner = fs.openSync(join(draft, OWNER), "r");
  try {
    const note = fs.openSync(join(draft, NOTE), "w", 0o600);
    const home = { path: join(root, name), owner, note };
    try {
      writeNote(home, []);
    } catch {
      // No room: batches taken over can be sent from here anyway.
    }
    fs.renameSync(draft, home.path);
    return home;
  } catch (error) {
    fs.closeSync(owner);
    throw error;
  }
}

/** Writes the losses if the process is killed now: in place, so that a full disk accepts them. */
export function writeNote(home: Home, losses: Iterable<Loss>): void {
  fs.writeSync(home.note, noteText(losses), 0, NOTE_BYTES, 0);
}

function noteText(losses: Iterable<Loss>): Buffer {
  const text = Buffer.alloc(NOTE_BYTES, "\n");
  let at = 0;
  for (const loss of losses) {
    const line = sealLine(loss.event());
    if (at + line.length <= NOTE_BYTES) at += line.copy(text, at);
  }
  return text;
}

/** Reads the note of any home: the losses if its process has been killed. */
export function readNote(home: string): Loss[] {
  try {
    return declaredIn(salvage(fs.readFileSync(notePath(home)), 0).lines);
  } catch {
    return [];
  }
}

/** Rewrites the note of a dead process's home. */
export function rewriteNote(home: string, losses: Iterable<Loss>): void {
  fs.writeFileSync(notePath(home), noteText(losses));
}

function notePath(home: string): string {
  const lock = join(home, LOCK);
  return fs.existsSync(lock) ? lock : join(home, NOTE);
}

/** The homes in this root. */
export function homes(root: string): string[] {
  return foldersIn(root).filter((path) => {
    const name = basename(path);
    return name !== REJECTED && !name.startsWith(".");
  });
}

function foldersIn(folder: string): string[] {
  try {
    return fs
      .readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => join(folder, entry.name));
  } catch {
    return [];
  }
}

/** Whether the process of a home has ended, so that its events may be taken over. */
export function isDead(home: string): boolean {
  const owner = readOwner(home);
  if (!owner) {
    removeIfEmpty(home); // of a process that was killed while it removed this home
    return false;
  }
  const here = thisProcess();
  const isOurs =
    owner.pid === here.pid && owner.started === here.started &&
    owner.boot === here.boot && owner.namespace === here.namespace;
  // Only this SDK keeps the file open; a home with a lock is one of a trail of another language.
  if (isOurs) return !fs.existsSync(join(home, LOCK)) && !isHeldHere(home);
  return hasEnded(owner, here, runs);
}

/**
 * Moves a dead process's home into the own one and returns where it is. If this process dies, too,
 * both are taken over together. Throws if another process was quicker.
 */
export function take(home: string, own: string): string {
  const name = basename(home);
  const taken = join(own, name.endsWith(TAKEN) ? name : `${name}${TAKEN}`);
  fs.renameSync(home, taken);
  return taken;
}

/** The homes that the process of this home had taken over and not emptied. */
export function takenHomes(home: string): string[] {
  return foldersIn(home).filter((path) => path.endsWith(TAKEN));
}

/** Removes a home if it has no events. */
export function removeHome(home: string): void {
  const own = [NOTE, LOCK, OWNER];
  if (fs.readdirSync(home).some((name) => !own.includes(name))) return;
  for (const name of own) fs.rmSync(join(home, name), { force: true });
  fs.rmdirSync(home);
}

function removeIfEmpty(home: string): void {
  try {
    fs.rmdirSync(home);
  } catch {
    // It holds something, or is gone.
  }
}

/** Deletes the first files of a folder, in order of name, until it holds `maxBytes` at most. */
export function prune(folder: string, maxBytes: number): void {
  try {
    const files = fs.readdirSync(folder).sort().map((name) => join(folder, name));
    let size = sizeOf(files);
    for (const file of files) {
      if (size <= maxBytes) return;
      size -= fs.statSync(file).size;
      fs.rmSync(file);
    }
  } catch {
    // Another process prunes it, too.
  }
}

/** The bytes of these files; those that are gone count as none. */
export function sizeOf(files: Iterable<string>): number {
  let size = 0;
  for (const file of files) size += fs.statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  return size;
}
