/** The event files of a home: their names, and what a dead process left in them. */
import * as fs from "node:fs";
import { basename, extname, join } from "node:path";
import { uuid7 } from "../uuid.js";
import type { Batch } from "./batch.js";
import { readNote, rewriteNote } from "./home.js";
import { type Range, salvage } from "./lines.js";
import { heldIn, type Loss } from "./losses.js";

export const OPEN = ".open";
export const PART = ".part";
export const REPLACED = ".replaced";
const SEALED = ".batch";
const SLIM = ".slim";
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** The name of a batch's file: its id, first number and count. */
export function fileName(batch: Batch): string {
  return `${batch.id}.${batch.firstSeq}.${batch.count}${batch.isSlim ? SLIM : SEALED}`;
}

/** The name of the segment being written. */
export function openName(firstSeq: number): string {
  return `${String(firstSeq).padStart(12, "0")}${OPEN}`;
}

/** What a file's name says of its batch. An invalid name gives a new batch. */
export interface Named {
  id: string;
  firstSeq: number;
  count: number;
  isSlim: boolean;
}

/** Reads a batch's members from its file's name. */
export function parseName(path: string): Named {
  const suffix = extname(path);
  const stem = basename(path, suffix);
  const isSlim = suffix === SLIM;
  if (suffix === OPEN && /^\d{1,15}$/.test(stem)) {
    return { id: uuid7(), firstSeq: Number(stem), count: 0, isSlim };
  }
  const [id, first, count, ...more] = stem.split(".");
  if (id && UUID.test(id) && /^\d{1,15}$/.test(first ?? "") && /^\d{1,15}$/.test(count ?? "") && more.length === 0) {
    return { id: id.toLowerCase(), firstSeq: Number(first), count: Number(count), isSlim };
  }
  return { id: uuid7(), firstSeq: 0, count: 0, isSlim };
}

/** The files with events in a home, in order of name. */
export function eventFiles(home: string): string[] {
  return fs
    .readdirSync(home)
    .filter((name) => [OPEN, SEALED, SLIM].includes(extname(name)))
    .sort()
    .map((name) => join(home, name));
}

/** Completes or undoes the replacements that a dead process had begun. */
export function finishReplacements(home: string): void {
  const names = fs.readdirSync(home);
  const replaced = new Set(
    names.filter((name) => name.endsWith(REPLACED)).map((name) => name.slice(0, -REPLACED.length)),
  );
  for (const part of names.filter((name) => name.endsWith(PART))) {
    const plus = part.indexOf("+");
    const name = part.slice(plus + 1, -PART.length);
    if (plus >= 0 && replaced.has(part.slice(0, plus))) fs.renameSync(join(home, part), join(home, name));
    else fs.rmSync(join(home, part));
  }
  for (const id of replaced) fs.rmSync(join(home, `${id}${REPLACED}`));
}

/**
 * Computes the losses of a dead process: its note without the numbers in its files. Rewrites the
 * note with exactly these, because the files it is computed from will be moved.
 */
export function settleNote(home: string): Loss[] {
  const noted = readNote(home);
  if (noted.length === 0) return [];
  const held = new Map<string, Range[]>();
  for (const path of eventFiles(home)) {
    const { lines } = salvage(fs.readFileSync(path), parseName(path).firstSeq);
    for (const loss of heldIn(lines, "")) {
      held.set(loss.producerId, [...(held.get(loss.producerId) ?? []), loss.numbers]);
    }
  }
  const lost = noted.flatMap((loss) => loss.without(held.get(loss.producerId) ?? []));
  if (lost.length > 0) rewriteNote(home, lost);
  return lost;
}
