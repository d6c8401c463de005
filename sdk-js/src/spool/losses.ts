/** Numbers that a producer had to give up, and the gap events that declare them. */
import { getSystemErrorMap } from "node:util";
import { uuid7 } from "../uuid.js";
import { numbers, type Range, type Salvage } from "./lines.js";

const GAP = Buffer.from('{"type":"gap"');

/** A contiguous range of one producer's numbers, given up for one reason. */
export class Loss {
  /** The id of its gap event. Once it is set, the range no longer changes. */
  eventId: string | undefined;

  constructor(
    readonly producerId: string,
    readonly numbers: Range,
    readonly reason: string,
  ) {}

  get count(): number {
    return this.numbers.stop - this.numbers.start;
  }

  /** Its gap event, as JSON text. Id and range are fixed from now on. */
  event(): string {
    this.eventId ??= uuid7();
    return JSON.stringify({
      type: "gap",
      event_id: this.eventId,
      producer_id: this.producerId,
      from_seq: this.numbers.start,
      to_seq: this.numbers.stop - 1,
      reason: this.reason,
      count: this.count,
    });
  }

  /** The parts of this loss without the numbers known not to be lost. */
  without(held: Range[]): Loss[] {
    const left: Loss[] = [];
    let start = this.numbers.start;
    const add = (stop: number): void => {
      if (stop > start) left.push(new Loss(this.producerId, { start, stop }, this.reason));
    };
    for (const part of [...held].sort((a, b) => a.start - b.start)) {
      add(Math.min(part.start, this.numbers.stop));
      start = Math.max(start, part.stop);
    }
    add(this.numbers.stop);
    return left;
  }

  /** Extends this loss by the other if it follows directly. Returns whether it did. */
  takesUp(other: Loss): boolean {
    if (
      this.eventId !== undefined ||
      this.producerId !== other.producerId ||
      this.reason !== other.reason ||
      this.numbers.stop !== other.numbers.start
    ) {
      return false;
    }
    this.numbers.stop = other.numbers.stop;
    return true;
  }
}

/** Makes one loss for each producer, from its first lost number to its last. */
export function gather(losses: Iterable<Loss>): Loss[] {
  const byProducer = new Map<string, Loss>();
  for (const loss of losses) {
    const whole = byProducer.get(loss.producerId);
    if (!whole) {
      byProducer.set(loss.producerId, new Loss(loss.producerId, { ...loss.numbers }, loss.reason));
      continue;
    }
    whole.numbers.start = Math.min(whole.numbers.start, loss.numbers.start);
    whole.numbers.stop = Math.max(whole.numbers.stop, loss.numbers.stop);
  }
  return [...byProducer.values()];
}

/** The gap events for damaged lines, to be stored beside the whole lines. */
export function damage(producerId: string, salvaged: Salvage): Buffer[] {
  return salvaged.lost.map((lost) => Buffer.from(new Loss(producerId, lost, "damaged").event()));
}

/** What would be lost with these lines: their numbers, and the losses they declare. */
export function heldIn(lines: Buffer[], reason: string): Loss[] {
  const held: Loss[] = [];
  for (const [producer, ranges] of numbers(lines)) {
    for (const range of ranges) held.push(new Loss(producer, range, reason));
  }
  return [...held, ...declaredIn(lines)];
}

/** Reads the losses that these lines declare. */
export function declaredIn(lines: Buffer[]): Loss[] {
  const declared: Loss[] = [];
  for (const line of lines) {
    if (!line.subarray(0, GAP.length).equals(GAP)) continue;
    const loss = readLoss(line);
    if (loss && loss.count > 0) declared.push(loss);
  }
  return declared;
}

function readLoss(line: Buffer): Loss | undefined {
  try {
    const event = JSON.parse(line.toString()) as Record<string, unknown>;
    const { producer_id: producer, from_seq: from, to_seq: to, reason, event_id: id } = event;
    if (typeof producer !== "string" || typeof reason !== "string" || typeof id !== "string") return;
    if (!Number.isSafeInteger(from) || !Number.isSafeInteger(to)) return;
    const loss = new Loss(producer, { start: from as number, stop: (to as number) + 1 }, reason);
    loss.eventId = id;
    return loss;
  } catch {
    return; // a user's own file may contain anything
  }
}

/** A short name of the kind of failure, for the ledger; never a path or a payload. */
export function reasonOf(error: unknown): string {
  const { errno } = error as { errno?: unknown };
  const known = typeof errno === "number" ? getSystemErrorMap().get(errno) : undefined;
  return known ? known[1].toLowerCase().replaceAll(" ", "-") : "write-failed";
}
