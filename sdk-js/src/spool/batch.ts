/** A batch of events that are sent together: its id and its limits. */
import { hostname } from "node:os";
import { threadId } from "node:worker_threads";
import { randomHex, uuid7 } from "../uuid.js";

export const BATCH_EVENTS = 500;
export const BATCH_BYTES = 1024 * 1024;

/**
 * Events that are sent together under one idempotency key.
 *
 * `size` is in bytes as spooled. `order` is the order in which this process got its batches. `since`
 * is when the batch was sealed, in milliseconds of the monotonic clock. `lines` are its events if
 * they are in memory only.
 */
export interface Batch {
  readonly id: string;
  readonly firstSeq: number;
  readonly count: number;
  readonly size: number;
  readonly isSlim: boolean;
  readonly order: number;
  readonly since: number;
  lines: Buffer[] | undefined;
}

/** Makes a batch; what is not given is that of a new one. */
export function makeBatch(given: Partial<Batch> & { firstSeq: number; count: number }): Batch {
  return {
    id: uuid7(),
    size: 0,
    isSlim: false,
    order: 0,
    since: performance.now(),
    lines: undefined,
    ...given,
  };
}

/** Names this thread by host, pid and random digits, because pids are reused. */
export function newProducerId(): string {
  const host = hostname().replace(/[^\p{L}\p{N}.-]/gu, "_").slice(0, 60);
  const thread = threadId === 0 ? "" : `t${threadId}`;
  return `${host === "" ? "host" : host}-${process.pid}${thread}-${randomHex(4)}`;
}
