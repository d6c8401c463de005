/**
 * Sends a spool's batches to the server: when to send, what each answer means for the batch, and the
 * spool's limits of bytes and days. It never throws into the host and never logs a payload. Its
 * timers do not keep the process alive.
 */
import { AsyncResource } from "node:async_hooks";
import type { Announcer } from "./announcer.js";
import { acknowledgement } from "./spool/acknowledged.js";
import type { Batch } from "./spool/batch.js";
import { isSinceVersion2 } from "./spool/lines.js";
import { slimLine } from "./spool/slim.js";
import { DamagedError, type Spool } from "./spool/spool.js";
import { type Answer, type Transport, UnreachableError } from "./transport.js";

const CONTRACT_VERSION = 2;
const LINGER_MS = 200; // a first event waits this long for others
const PACE_MS = 1000; // between batches that are not full, until the server asks for longer
const PACE_MAX_MS = 30_000;
const BACKOFF_MAX_MS = 60_000;
const ASK_AGAIN_MS = 600_000; // a server of version 1 may be upgraded
const REFUSED_MS = 60_000; // after 401, 403 or 404: someone may correct the key or address
const KEEP_HOUSE_MS = 10_000;
const DAY_MS = 86_400_000;

export interface ShipperOptions {
  maxAgeDays: number;
  keepsAll: boolean;
  warn: (message: string) => void;
}

export class Shipper {
  acknowledged = 0;
  duplicates = 0;
  rejected = 0;
  readonly #spool: Spool;
  readonly #transport: Transport;
  readonly #announcer: Announcer;
  readonly #options: ShipperOptions;
  /** Timers run in the context of this object, not in that of the call that set them. */
  readonly #context = new AsyncResource("tooltrail");
  #timer: NodeJS.Timeout | undefined;
  #timerAt = Infinity;
  #isWoken = false;
  #turning: Promise<void> | undefined;
  #turned: (() => void)[] = [];
  #failedTurns = 0;
  #failuresInARow = 0;
  #isStopped = false;
  #pace = PACE_MS;
  #lastBatchAt = -PACE_MAX_MS;
  #sealAt: number | undefined; // when to seal the open segment, full or not
  #retryAt = 0; // our own backoff; a flush overrides it once
  #allowedAt = 0; // the server's Retry-After; nothing overrides it
  #nextHousekeepingAt = 0;
  readonly #warned = new Set<string>();
  #contract: number | undefined; // the server's version; undefined until it has answered
  #askAgainAt = 0;
  #hasHeld = false;

  constructor(spool: Spool, transport: Transport, announcer: Announcer, options: ShipperOptions) {
    this.#spool = spool;
    this.#transport = transport;
    this.#announcer = announcer;
    this.#options = options;
  }

  /** Signals that there is something to send, or to drop if the spool is full. Never waits. */
  wake(): void {
    this.#isWoken ||= this.#spool.isFull;
    if (this.#turning === undefined) this.#schedule();
  }

  /**
   * Sends what is in the spool now, and waits for that up to `timeout` milliseconds. Returns whether
   * the server has all of it. With `givesUp` the first failed attempt ends the wait.
   */
  async flush(timeout: number, givesUp = false): Promise<boolean> {
    this.#spool.declare();
    this.#spool.seal();
    const target = this.#spool.lastOrder;
    const failed = this.#failedTurns;
    const isSent = (): boolean => this.#spool.batches().every((batch) => batch.order > target);
    if (isSent()) return true;
    this.#retryAt = 0;
    this.#isWoken = true;
    this.wake();
    const until = performance.now() + timeout;
    // It keeps the process alive meanwhile.
    const deadline = setTimeout(() => { this.#notify(); }, timeout + 1);
    try {
      while (!isSent() && performance.now() < until && !this.#isStopped) {
        if (givesUp && this.#failedTurns > failed) return false;
        if (this.#spool.oldest() === undefined && this.#spool.openCount === 0) return isSent();
        await new Promise<void>((resolve) => this.#turned.push(resolve));
      }
    } finally {
      clearTimeout(deadline);
    }
    return isSent();
  }

  /** Ends after the current request, waiting for it up to `timeout` milliseconds. */
  async stop(timeout: number): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    if (this.#turning) {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, timeout)));
      await Promise.race([this.#turning, late]);
      clearTimeout(timer);
    }
    this.#notify();
  }

  #notify(): void {
    const waiting = this.#turned;
    this.#turned = [];
    for (const resolve of waiting) resolve();
  }

  #schedule(): void {
    if (this.#isStopped) return;
    const now = performance.now();
    const due = Math.max(this.#dueAt(), now);
    if (this.#timerAt <= due && this.#timerAt > now) return;
    clearTimeout(this.#timer);
    this.#timerAt = due;
    this.#context.runInAsyncScope(() => {
      this.#timer = setTimeout(() => { this.#run(); }, due - now);
      this.#timer.unref();
    });
  }

  /** When there is something to do. */
  #dueAt(): number {
    if (this.#isWoken) return 0;
    const maySendAt = this.#maySendAt();
    let due = this.#nextHousekeepingAt;
    if (this.#spool.oldest() !== undefined) due = Math.min(due, maySendAt);
    else if (this.#spool.openCount > 0) due = Math.min(due, Math.max(this.#sealAt ?? 0, maySendAt));
    return due;
  }

  #maySendAt(): number {
    return Math.max(this.#retryAt, this.#allowedAt);
  }

  #run(): void {
    this.#timerAt = Infinity;
    this.#isWoken = false;
    if (this.#isStopped || this.#turning) return;
    this.#turning = this.#turn()
      .catch((error: unknown) => this.#failed(`shipping failed: ${error instanceof Error ? error.name : "Error"}`))
      .then((succeeded) => {
        this.#failedTurns += succeeded ? 0 : 1;
        this.#turning = undefined;
        this.#notify();
        this.#schedule();
      });
  }

  /** Does housekeeping if it is due, then sends what is due. False if the server failed. */
  async #turn(): Promise<boolean> {
    const now = performance.now();
    if (now >= this.#nextHousekeepingAt) {
      this.#nextHousekeepingAt = now + KEEP_HOUSE_MS * between(0.8, 1.2);
      this.#spool.declare();
      this.#spool.adopt();
      if (now >= this.#askAgainAt && this.#spool.release()) this.#contract = undefined;
    }
    if (now < this.#maySendAt()) {
      // Not while the server accepts events, unless they arrive faster than they are sent.
      this.#keepBudget();
      return this.#spool.oldest() === undefined;
    }
    for (;;) {
      if (this.#isStopped) return true;
      const batch = this.#spool.oldest();
      if (batch) {
        if (!(await this.#send(batch))) return false;
        if (this.#spool.isOverflowing) this.#keepBudget();
      } else if (this.#isTimeToSeal()) this.#spool.seal();
      else break;
    }
    try {
      await this.#announcer.announce(this.#transport);
    } catch (error) {
      if (error instanceof UnreachableError) return this.#failed(`the server is unreachable: ${error.message}`);
      throw error;
    }
    return true;
  }

  #isTimeToSeal(): boolean {
    if (this.#spool.openCount === 0) {
      this.#sealAt = undefined;
      return false;
    }
    const now = performance.now();
    this.#sealAt ??= Math.max(this.#lastBatchAt + this.#pace, now + LINGER_MS);
    if (now < this.#sealAt) return false;
    this.#sealAt = undefined;
    return true;
  }

  // Sending

  /** Sends one batch and handles the answer. False if the next batch must wait. */
  async #send(batch: Batch): Promise<boolean> {
    let lines: Buffer[];
    try {
      lines = this.#spool.read(batch);
    } catch (error) {
      if (error instanceof DamagedError) {
        this.#warn("a batch is damaged");
        return this.#try("repair a damaged batch", () => { this.#spool.mend(batch); });
      }
      this.#warn("cannot read a batch");
      this.#spool.giveUp(batch, "unreadable");
      return true;
    }
    if (lines.length === 0) {
      this.#spool.discard(batch);
      return true;
    }
    try {
      if (this.#contract !== CONTRACT_VERSION) {
        const succeeded = await this.#setNewerAside(batch, lines);
        if (succeeded !== undefined) return succeeded;
      }
      this.#lastBatchAt = performance.now();
      const answer = await this.#transport.postEvents(lines, batch.id);
      if (answer.status === 200) this.#noteContract(answer.contract);
      return this.#heed(batch, lines, answer);
    } catch (error) {
      if (error instanceof UnreachableError) return this.#failed(`the server is unreachable: ${error.message}`);
      throw error;
    }
  }

  /**
   * Splits a batch with newer events, or holds it: a server of version 1 would put them into its
   * inbox. Undefined if it may be sent, false after a failure. Such events are other SDKs'.
   */
  async #setNewerAside(batch: Batch, lines: Buffer[]): Promise<boolean | undefined> {
    const newer = lines.filter(isSinceVersion2);
    if (newer.length === 0) return undefined;
    if (newer.length < lines.length) {
      const others = lines.filter((line) => !isSinceVersion2(line));
      return this.#try("split a batch", () => { this.#spool.replace(batch, [others, newer], batch.isSlim); });
    }
    if (this.#contract === undefined) {
      const answer = await this.#transport.askContract();
      if (answer.contract === 1 && answer.status !== 405) return this.#failed(`the server returned ${answer.status}`);
      this.#noteContract(answer.contract);
    }
    if (this.#contract === CONTRACT_VERSION) return undefined;
    this.#askAgainAt = performance.now() + ASK_AGAIN_MS;
    this.#spool.hold(batch);
    if (!this.#hasHeld) {
      this.#hasHeld = true;
      this.#options.warn("the server is older than these events; they are kept until it is upgraded");
    }
    return true;
  }

  #noteContract(version: number): void {
    this.#contract = Math.min(version, CONTRACT_VERSION);
    if (this.#contract === CONTRACT_VERSION) {
      this.#hasHeld = false;
      this.#spool.release();
    }
  }

  #heed(batch: Batch, lines: Buffer[], answer: Answer): boolean {
    const { status, document } = answer;
    if (status === 200 && typeof document["accepted"] === "number") {
      this.#acknowledged(batch, lines, document);
      return true;
    }
    if (status === 413) return this.#makeSmaller(batch, lines);
    if ([401, 403, 404, 405].includes(status)) {
      this.#allowedAt = performance.now() + REFUSED_MS;
      return this.#failed(`the server rejects the key or the URL (${status})`);
    }
    if (status >= 400 && status < 500 && ![408, 425, 429].includes(status)) {
      this.#warn(`the server rejected a batch (${status}); it was moved to rejected/`);
      const detail = document["detail"];
      return this.#park(batch, typeof detail === "string" ? `${status} ${detail}` : String(status));
    }
    if (answer.retryAfter !== undefined) {
      this.#allowedAt = performance.now() + answer.retryAfter * between(1, 1.2);
    }
    return this.#failed(`the server returned ${status}`);
  }

  #acknowledged(batch: Batch, lines: Buffer[], document: Record<string, unknown>): void {
    const kept = acknowledgement(document, batch.id, lines);
    if (kept) this.#spool.keepAcknowledged(kept);
    this.#spool.discard(batch);
    this.acknowledged += lines.length;
    if (typeof document["duplicates"] === "number") this.duplicates += document["duplicates"];
    const rejected = document["rejected"];
    if (Array.isArray(rejected) && rejected.length > 0) {
      this.rejected += rejected.length;
      this.#warn("the server rejected some events and put them into its inbox");
    }
    const next = document["next_after_ms"];
    this.#pace = typeof next === "number" ? Math.min(Math.max(next, PACE_MS), PACE_MAX_MS) : PACE_MS;
    this.#failuresInARow = 0;
    this.#warned.clear();
  }

  /** Splits a batch that is too large for the server; a single event loses its payloads. */
  #makeSmaller(batch: Batch, lines: Buffer[]): boolean {
    const half = lines.length >> 1;
    if (half === 0 && batch.isSlim) return this.#park(batch, "413");
    return this.#try("split a batch", () => {
      if (half > 0) this.#spool.replace(batch, [lines.slice(0, half), lines.slice(half)], batch.isSlim);
      else this.#spool.replace(batch, [lines.map((line) => slimLine(line, "too-large"))], true);
    });
  }

  #park(batch: Batch, reason: string): boolean {
    return this.#try("move a batch to rejected/", () => { this.#spool.park(batch, reason); });
  }

  #try(what: string, work: () => void): boolean {
    try {
      work();
      return true;
    } catch (error) {
      return this.#failed(`cannot ${what}: ${error instanceof Error ? error.name : "Error"}`);
    }
  }

  #failed(message: string): boolean {
    this.#warn(message);
    const ceiling = Math.min(BACKOFF_MAX_MS, 1000 * 2 ** this.#failuresInARow);
    this.#failuresInARow = Math.min(this.#failuresInARow + 1, 10);
    this.#retryAt = performance.now() + ceiling * between(0.5, 1);
    return false;
  }

  /** Logs a message once, until the server accepts events again. */
  #warn(message: string): void {
    if (this.#warned.has(message)) return;
    this.#warned.add(message);
    this.#options.warn(`${message}; events are kept`);
  }

  // Budget

  /** Drops what is too old or too much: payloads first, then the oldest events. */
  #keepBudget(): void {
    if (this.#options.keepsAll) return;
    const oldest = performance.now() - this.#options.maxAgeDays * DAY_MS;
    for (const batch of this.#spool.batches()) {
      if (batch.since < oldest) this.#spool.giveUp(batch, "expired");
    }
    while (this.#spool.isFull) {
      const batches = this.#spool.batches();
      const [first] = batches;
      if (!first) return;
      const whole = batches.find((batch) => !batch.isSlim);
      if (!whole || !this.#slim(whole)) this.#spool.giveUp(first, "spool-full");
    }
  }

  /** Removes the payloads of a batch; false if the disk has no room even for the rest. */
  #slim(batch: Batch): boolean {
    try {
      const lines = this.#spool.read(batch).map((line) => slimLine(line, "spool-full"));
      this.#spool.replace(batch, [lines], true);
      return true;
    } catch {
      return false;
    }
  }
}

/** A random number, which spreads the load of many processes. */
function between(low: number, high: number): number {
  return low + Math.random() * (high - low);
}
