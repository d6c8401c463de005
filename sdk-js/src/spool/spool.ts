/**
 * The spool of one thread: it numbers events, writes them to a file before `append` returns, cuts
 * them into batches, takes over what dead processes left, and declares what had to be given up.
 *
 * One segment becomes one batch, so nothing is copied between writing and sending. A batch is
 * replaced by others in three steps, so that a kill at any point leaves either the old batch or the
 * new ones to send; docs/spool.md lists them. If the disk rejects writes, some events wait in
 * memory; a note on file has their numbers, so that they are declared lost if the process is killed.
 */
import * as fs from "node:fs";
import { basename, join } from "node:path";
import { keepAcknowledged, type Acknowledgement } from "./acknowledged.js";
import { BATCH_BYTES, BATCH_EVENTS, type Batch, makeBatch, newProducerId } from "./batch.js";
import {
  eventFiles, fileName, finishReplacements, openName, PART, parseName, REPLACED, settleNote,
} from "./files.js";
import {
  type Home, homes, isDead, makeHome, ORIGIN, prune, REJECTED, removeHome, sizeOf, take, takenHomes, writeNote,
} from "./home.js";
import {
  firstNumber, LINE_OVERHEAD, numbers, openLines, type Range, type Salvage, salvage, sealBriefly, sealLine, total,
} from "./lines.js";
import { damage, declaredIn, gather, heldIn, Loss, reasonOf } from "./losses.js";

/** What may wait in memory while the disk rejects writes, in bytes. */
export const SPILL_BYTES = 16 * 1024 * 1024;
// Multiples of the allowance: above the first, payloads are removed even while events are being
// sent; above the second, new events are rejected.
const OVERFLOWING = 1.125;
const HARD_LIMIT = 1.25;
const REJECTED_SHARE = 4; // rejected batches may take a quarter of the limit; the newest stay
const CLOCKS_DIFFER_MS = 60_000; // the file system's clock may be that of another machine

/** A batch differs from what was written. `Spool.mend` saves what can be saved. */
export class DamagedError extends Error {}

export interface SpoolOptions {
  /** The folder of this server and key; undefined to keep events in memory only. */
  root: string | undefined;
  maxBytes: number;
  fsync: boolean;
  spillBytes: number;
  /** Called when there is something new to send. Must return at once. */
  onReady: () => void;
  warn: (message: string) => void;
}

export class Spool {
  readonly producerId = newProducerId();
  /** Bytes this thread may keep. */
  allowance: number;
  adopted = 0;
  readonly dropped = new Map<string, number>();
  readonly #options: SpoolOptions;
  readonly #member = `,"producer_id":${JSON.stringify(this.producerId)},"producer_seq":`;
  #nextSeq = 0;
  #nextOrder = 0;
  #home: Home | undefined;
  #fd = -1;
  #openPath = "";
  #openFirst = 0;
  #openCount = 0;
  #openBytes = 0;
  #batches: Batch[] = [];
  #sealedBytes = 0;
  readonly #held = new Set<string>();
  #loose: Buffer[] = []; // lines that the disk rejected
  #looseBytes = 0;
  #losses: Loss[] = [];
  #noted = "";

  constructor(options: SpoolOptions) {
    this.#options = options;
    this.allowance = options.maxBytes;
  }

  // Writing

  /**
   * Numbers one event, given as JSON text without its closing brace, and keeps it. Returns false if
   * it could not be kept; its loss is noted.
   */
  append(head: string): boolean {
    const seq = this.#nextSeq++;
    const line = sealBriefly(`${head}${this.#member}${seq}}`);
    if (this.waitingBytes + line.length > this.allowance * HARD_LIMIT) {
      this.#lose(this.producerId, { start: seq, stop: seq + 1 }, "spool-full");
      return false;
    }
    if (this.#losses.length > 0) this.declare();
    try {
      this.#add(line, seq);
      return true;
    } catch (error) {
      if (this.#spill(line, reasonOf(error))) return true;
      this.#lose(this.producerId, { start: seq, stop: seq + 1 }, reasonOf(error));
      return false;
    }
  }

  #add(line: Buffer, seq: number): void {
    if (this.#openCount > 0 && this.#openBytes + line.length > BATCH_BYTES) this.seal();
    if (this.#openCount === 0) this.#openFirst = seq;
    this.#write(line);
    this.#openBytes += line.length;
    this.#openCount += 1;
    if (this.#openCount >= BATCH_EVENTS || this.#openBytes >= BATCH_BYTES) this.seal();
    else if (this.#openCount === 1) this.#options.onReady();
  }

  #write(line: Buffer): void {
    if (this.#fd < 0) this.#openSegment();
    let written = 0;
    try {
      written = fs.writeSync(this.#fd, line);
      if (written !== line.length) throw Object.assign(new Error("no space left"), { errno: -28 });
      if (this.#options.fsync) fs.fdatasyncSync(this.#fd);
    } catch (error) {
      if (written > 0) fs.ftruncateSync(this.#fd, fs.fstatSync(this.#fd).size - written);
      throw error;
    }
  }

  #openSegment(): void {
    const name = openName(this.#openFirst);
    this.#openPath = join(this.#settle().path, name);
    try {
      this.#fd = fs.openSync(this.#openPath, "a", 0o600);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      this.#release(); // someone has removed the folder
      this.#openPath = join(this.#settle().path, name);
      this.#fd = fs.openSync(this.#openPath, "a", 0o600);
    }
    this.#syncFolder();
  }

  #settle(): Home {
    if (this.#home) return this.#home;
    const { root } = this.#options;
    if (root === undefined) throw Object.assign(new Error("in memory only"), { errno: -28 });
    fs.mkdirSync(root, { mode: 0o700, recursive: true });
    this.#home = makeHome(root, this.producerId);
    this.#noted = "";
    this.#note(); // losses from before there was a file for the note
    return this.#home;
  }

  #release(): void {
    const home = this.#home;
    this.#home = undefined;
    if (home) for (const fd of [home.note, home.owner]) fs.closeSync(fd);
  }

  #syncFolder(): void {
    if (!this.#options.fsync || !this.#home) return;
    const fd = fs.openSync(this.#home.path, "r");
    try {
      fs.fsyncSync(fd);
    } finally {
      fs.closeSync(fd);
    }
  }

  // Events that the disk rejected

  #spill(line: Buffer, reason: string): boolean {
    const inMemory = this.#batches.reduce((sum, batch) => sum + (batch.lines ? batch.size : 0), 0);
    if (this.#looseBytes + inMemory + line.length > this.#options.spillBytes) return false;
    if (this.#options.root !== undefined) this.#options.warn(`${reason}: events are kept in memory`);
    this.#loose.push(Buffer.from(line)); // its memory may be that of the next line
    this.#looseBytes += line.length;
    this.#note();
    if (this.#loose.length >= BATCH_EVENTS || this.#looseBytes >= BATCH_BYTES) this.#sealLoose();
    else if (this.#loose.length === 1) this.#options.onReady();
    return true;
  }

  #sealLoose(): void {
    if (this.#loose.length === 0) return;
    const lines = openLines(Buffer.concat(this.#loose));
    this.#loose = [];
    this.#looseBytes = 0;
    this.#insert(this.#batchOf(lines, { order: this.#nextOrder++, lines }));
  }

  /** Writes to file, under their ids, the batches that the disk had rejected. */
  #bringHome(): void {
    if (this.#options.root === undefined) return;
    this.#sealLoose();
    try {
      for (const batch of this.#batches) {
        if (!batch.lines) continue;
        this.#store(batch, batch.lines);
        batch.lines = undefined;
        this.#note();
      }
    } catch {
      // The disk still rejects writes.
    }
  }

  // Batches

  /** Turns everything written since the last batch into a batch, ready to send. */
  seal(): void {
    this.#sealLoose();
    if (this.#openCount === 0) return;
    const batch = makeBatch({
      firstSeq: this.#openFirst, count: this.#openCount, size: this.#openBytes, order: this.#nextOrder++,
    });
    this.#openCount = this.#openBytes = 0;
    const fd = this.#fd;
    this.#fd = -1;
    try {
      fs.closeSync(fd);
      fs.renameSync(this.#openPath, this.#pathOf(batch));
      this.#syncFolder();
    } catch (error) {
      this.#lose(this.producerId, { start: batch.firstSeq, stop: this.#nextSeq }, reasonOf(error));
      return;
    }
    this.#insert(batch);
  }

  #insert(batch: Batch): void {
    this.#batches.push(batch);
    this.#sealedBytes += batch.size;
    this.#options.onReady();
  }

  #batchOf(lines: Buffer[], given: Partial<Batch> & { firstSeq?: number }): Batch {
    const size = lines.reduce((sum, line) => sum + line.length + LINE_OVERHEAD, 0);
    return makeBatch({ ...given, firstSeq: firstNumber(lines, given.firstSeq ?? 0), count: lines.length, size });
  }

  #pathOf(batch: Batch): string {
    return join(this.#settle().path, fileName(batch));
  }

  #store(batch: Batch, lines: Buffer[]): void {
    const target = this.#pathOf(batch);
    this.#writeFile(`${target}${PART}`, lines);
    fs.renameSync(`${target}${PART}`, target);
    this.#syncFolder();
  }

  #writeFile(path: string, lines: Buffer[]): void {
    try {
      fs.writeFileSync(path, Buffer.concat(lines.map(sealLine)), { mode: 0o600, flush: this.#options.fsync });
    } catch (error) {
      fs.rmSync(path, { force: true });
      throw error;
    }
  }

  /** The batch to send next; undefined if there is none, or all are held. */
  oldest(): Batch | undefined {
    return this.#batches.find((batch) => !this.#held.has(batch.id));
  }

  /** The batches that are ready to send, oldest first. */
  batches(): readonly Batch[] {
    return [...this.#batches];
  }

  /** Keeps a batch and lets later ones be sent before it, until `release`. */
  hold(batch: Batch): void {
    this.#held.add(batch.id);
  }

  /** Lets held batches be sent. Returns whether there were any. */
  release(): boolean {
    const were = this.#held.size > 0;
    this.#held.clear();
    return were;
  }

  /** The events of a batch. Throws DamagedError, or if it cannot be read. */
  read(batch: Batch): Buffer[] {
    if (batch.lines) return batch.lines;
    const lines = openLines(fs.readFileSync(this.#pathOf(batch)));
    if (lines.length !== batch.count) throw new DamagedError(`batch ${batch.id} is damaged`);
    return lines;
  }

  #salvage(batch: Batch): Salvage {
    if (batch.lines) return { lines: batch.lines, lost: [] };
    return salvage(fs.readFileSync(this.#pathOf(batch)), batch.firstSeq, batch.count);
  }

  /** Removes a batch that the server has. */
  discard(batch: Batch): void {
    this.#forget(batch);
    if (batch.lines) this.#note();
    else fs.rmSync(this.#pathOf(batch), { force: true });
  }

  #forget(batch: Batch): void {
    const at = this.#batches.indexOf(batch);
    if (at < 0) return;
    this.#batches.splice(at, 1);
    this.#held.delete(batch.id);
    this.#sealedBytes -= batch.size;
  }

  /** Drops a batch and notes its numbers as lost. Gaps it declares stay declared. */
  giveUp(batch: Batch, reason: string): void {
    const { held, declared } = this.#contents(batch);
    this.#writeOff(held, reason, declared);
    this.discard(batch);
  }

  /** Lays aside a batch that the server rejects for good, with the reason; declares its loss. */
  park(batch: Batch, reason: string): void {
    const { held, declared } = this.#contents(batch);
    // Gaps alone are not declared again: they would be rejected again, endlessly.
    this.#writeOff(held, "refused", held.size > 0 ? declared : []);
    const { root } = this.#options;
    if (!batch.lines && root !== undefined) {
      const folder = join(root, REJECTED);
      fs.mkdirSync(folder, { mode: 0o700, recursive: true });
      fs.renameSync(this.#pathOf(batch), join(folder, `${batch.id}.ndjson`));
      try {
        fs.writeFileSync(join(folder, `${batch.id}.reason`), `${reason}\n`);
      } catch {
        // A full disk keeps the batch, but maybe not the reason.
      }
      prune(folder, this.#options.maxBytes / REJECTED_SHARE);
    }
    this.#forget(batch);
    this.#note();
  }

  /** Replaces a damaged batch by its whole lines, and notes the rest as lost. */
  mend(batch: Batch): void {
    const salvaged = this.#salvage(batch);
    const [owner] = numbers(salvaged.lines).keys();
    const lines = [...salvaged.lines, ...damage(owner ?? this.producerId, salvaged)];
    this.replace(batch, lines.length > 0 ? [lines] : [], batch.isSlim);
    this.#count("damaged", total(salvaged.lost));
  }

  /** Replaces a batch by others, which get their own ids: different bytes need another id. */
  replace(batch: Batch, parts: Buffer[][], isSlim: boolean): void {
    const { order, since, firstSeq } = batch;
    const fresh = parts.map((lines) => this.#batchOf(lines, { order, since, firstSeq, isSlim }));
    if (batch.lines) fresh.forEach((part, at) => (part.lines = parts[at]));
    else this.#swap(batch, fresh, parts);
    const at = this.#batches.indexOf(batch);
    this.#batches.splice(at, 1, ...fresh);
    this.#sealedBytes += fresh.reduce((sum, part) => sum + part.size, 0) - batch.size;
  }

  #swap(batch: Batch, fresh: Batch[], parts: Buffer[][]): void {
    const home = this.#settle().path;
    const drafts = fresh.map((part) => join(home, `${batch.id}+${fileName(part)}${PART}`));
    try {
      drafts.forEach((draft, at) => { this.#writeFile(draft, parts[at] ?? []); });
    } catch (error) {
      for (const draft of drafts) fs.rmSync(draft, { force: true });
      throw error;
    }
    const old = join(home, `${batch.id}${REPLACED}`);
    fs.renameSync(this.#pathOf(batch), old);
    drafts.forEach((draft, at) => {
      const part = fresh[at];
      if (part) fs.renameSync(draft, this.#pathOf(part));
    });
    this.#syncFolder();
    fs.rmSync(old);
  }

  // Losses

  #contents(batch: Batch): { held: Map<string, Range[]>; declared: Loss[] } {
    let salvaged: Salvage;
    try {
      salvaged = this.#salvage(batch);
    } catch { // the file is gone; the batch has its numbers
      const lost = { start: batch.firstSeq, stop: batch.firstSeq + batch.count };
      return { held: new Map([[this.producerId, [lost]]]), declared: [] };
    }
    const held = numbers(salvaged.lines);
    const [owner] = held.keys();
    for (const lost of salvaged.lost) this.#lose(owner ?? this.producerId, lost, "damaged");
    return { held, declared: declaredIn(salvaged.lines) };
  }

  #writeOff(held: Map<string, Range[]>, reason: string, declared: Loss[]): void {
    this.#losses.push(...declared);
    for (const [producer, ranges] of held) {
      for (const lost of ranges) this.#lose(producer, lost, reason);
    }
    // Before the batch is removed: a kill in between declares a loss twice, never not at all.
    this.declare();
  }

  #lose(producer: string, lost: Range, reason: string): void {
    this.#count(reason, lost.stop - lost.start);
    const loss = new Loss(producer, { ...lost }, reason);
    if (!this.#losses.at(-1)?.takesUp(loss)) this.#losses.push(loss);
    this.#note();
  }

  #count(reason: string, count: number): void {
    if (count === 0) return;
    this.#options.warn(`events are being dropped (${reason}); each one is counted`);
    this.dropped.set(reason, (this.dropped.get(reason) ?? 0) + count);
  }

  /** Writes the losses noted so far as gap events. Those that do not fit stay noted. */
  declare(): void {
    for (let loss = this.#losses[0]; loss; loss = this.#losses[0]) {
      const id = loss.eventId;
      const line = sealLine(loss.event()); // from here on this loss no longer grows
      try {
        this.#add(line, this.#nextSeq);
      } catch (error) {
        if (!this.#spill(line, reasonOf(error))) {
          loss.eventId = id;
          return;
        }
      }
      this.#losses.shift();
      this.#note();
    }
  }

  /** Updates the note on file that lists the events only in memory. Never throws. */
  #note(): void {
    if (!this.#home) return;
    const loose = this.#loose.length > 0 ? openLines(Buffer.concat(this.#loose)) : [];
    const inMemory = this.#batches.flatMap((batch) => batch.lines ?? []);
    const atRisk = gather([...heldIn([...inMemory, ...loose], "killed"), ...this.#losses]);
    const noted = JSON.stringify(atRisk.map((loss) => [loss.producerId, loss.numbers, loss.reason]));
    if (noted === this.#noted || (noted === "[]" && this.#noted === "")) return;
    try {
      writeNote(this.#home, atRisk);
      if (this.#options.fsync) fs.fdatasyncSync(this.#home.note);
      this.#noted = noted;
    } catch {
      // The disk rejects even bytes that it has given us; the losses are declared later.
    }
  }

  // Adoption

  /** Takes over what dead processes left. Never throws. */
  adopt(): void {
    const { root, maxBytes } = this.#options;
    if (root === undefined) return;
    this.#bringHome();
    let elsewhere = 0;
    let living = 1;
    // What the disk did not let us take before.
    for (const taken of this.#home ? takenHomes(this.#home.path) : []) this.#try(() => { this.#empty(taken); });
    for (const home of homes(root)) {
      if (home === this.#home?.path) continue;
      this.#try(() => {
        if (isDead(home)) {
          this.#empty(take(home, this.#settle().path));
        } else if (fs.existsSync(home)) {
          living += 1;
          elsewhere += sizeOf(eventFiles(home));
        }
      });
    }
    // A quiet process keeps its fair share even if another one writes a lot.
    this.allowance = Math.max(maxBytes - elsewhere, maxBytes / living);
  }

  #try(work: () => void): void {
    try {
      work();
    } catch {
      // Another process was quicker, or the disk rejects it: it stays where it is.
    }
  }

  /** Moves the events of a home that was taken over into the own one. */
  #empty(home: string): void {
    for (const taken of takenHomes(home)) {
      this.#try(() => { this.#empty(take(taken, this.#settle().path)); });
    }
    finishReplacements(home);
    const lost = settleNote(home);
    for (const path of eventFiles(home)) this.#try(() => { this.#takeSegment(path); });
    if (lost.length > 0) {
      const lines = lost.map((loss) => Buffer.from(loss.event()));
      const batch = this.#batchOf(lines, { order: this.#nextOrder++ });
      this.#store(batch, lines);
      this.adopted += lines.length;
      this.#insert(batch);
      for (const loss of lost) this.#count(loss.reason, loss.count);
    }
    removeHome(home);
  }

  #takeSegment(path: string): void {
    const named = parseName(path);
    const salvaged = salvage(fs.readFileSync(path), named.firstSeq, named.count);
    const isWhole = salvaged.lost.length === 0;
    const [owner] = numbers(salvaged.lines).keys();
    const producer = owner ?? basename(join(path, "..")).split("+")[0]?.replace(/\.taken$/, "") ?? "";
    const lines = [...salvaged.lines, ...damage(producer, salvaged)];
    const since = performance.now() - this.#ageOf(named.id);
    const made = this.#batchOf(lines, { order: this.#nextOrder++, since, isSlim: named.isSlim });
    const mine: Batch = isWhole ? { ...made, id: named.id, firstSeq: named.firstSeq } : made;
    if (lines.length > 0) {
      if (isWhole) fs.renameSync(path, this.#pathOf(mine));
      else this.#store(mine, lines);
      this.adopted += lines.length;
      this.#insert(mine);
      this.#batches.sort((a, b) => (a.id < b.id ? -1 : 1)); // at its place by age
    }
    this.#count("damaged", total(salvaged.lost));
    fs.rmSync(path, { force: true });
  }

  /** Milliseconds since another process sealed the batch, from the time in its id. */
  #ageOf(id: string): number {
    const sealedAt = Number.parseInt(id.replaceAll("-", "").slice(0, 12), 16);
    const origin = fs.statSync(join(this.#options.root ?? "", ORIGIN), { throwIfNoEntry: false });
    // An id older than the spool itself comes from a wrong clock, so the age is unknown.
    if (!origin || sealedAt < origin.mtimeMs - CLOCKS_DIFFER_MS) return 0;
    return Math.max(Date.now() - sealedAt, 0);
  }

  // State

  keepAcknowledged(kept: Acknowledgement): void {
    const { root } = this.#options;
    if (root !== undefined) this.#try(() => { keepAcknowledged(root, kept); });
  }

  /** Leaves everything in a state that the next process, or the next append, can take over. */
  close(): void {
    this.declare();
    this.seal();
    this.#bringHome();
    if (this.#options.root !== undefined) {
      for (const batch of this.batches()) if (batch.lines) this.giveUp(batch, "no-file");
    }
    const home = this.#home;
    if (!home) return;
    if (this.#fd >= 0) { // opened, but the disk accepted no line
      fs.closeSync(this.#fd);
      this.#fd = -1;
      fs.rmSync(this.#openPath, { force: true });
    }
    const isNoted = this.#noted !== "" && this.#noted !== "[]";
    if (!isNoted) this.#try(() => { removeHome(home.path); }); // else the next process declares them
    this.#release();
  }

  get isFull(): boolean {
    return this.waitingBytes >= this.allowance;
  }

  get isOverflowing(): boolean {
    return this.waitingBytes >= this.allowance * OVERFLOWING;
  }

  /** How many events have been numbered. */
  get emitted(): number {
    return this.#nextSeq;
  }

  /** How many lines are not sealed yet. */
  get openCount(): number {
    return this.#openCount + this.#loose.length;
  }

  /** How many lines the server does not have yet, including gaps still to be written. */
  get waiting(): number {
    return this.openCount + this.#losses.length + this.#batches.reduce((sum, batch) => sum + batch.count, 0);
  }

  get waitingBytes(): number {
    return this.#sealedBytes + this.#openBytes + this.#looseBytes;
  }

  /** How many of the waiting lines are in no file. */
  get inMemory(): number {
    const inBatches = this.#batches.reduce((sum, batch) => sum + (batch.lines ? batch.count : 0), 0);
    return inBatches + this.#loose.length + this.#losses.length;
  }

  /** The `order` of the newest batch so far. */
  get lastOrder(): number {
    return this.#nextOrder - 1;
  }
}
