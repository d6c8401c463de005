/**
 * The form of one line in a segment file, and recovery from damaged lines. docs/spool.md describes
 * it: a JSON object, a TAB, eight hexadecimal digits of crc32 and a line feed.
 */
import { crc32 } from "node:zlib";

/** Bytes of a line beyond its JSON text. */
export const LINE_OVERHEAD = 10;

const TAB = 9;
const LINE_FEED = 10;
const DIGITS = "0123456789abcdef";
const room = Buffer.allocUnsafeSlow(256 * 1024);
const TAIL_BYTES = 800; // holds the producer's id and number, which end a line
const NUMBER = /"producer_seq":(\d+)\}$/;
const PRODUCER = /"producer_id":"([^"\\]*)","producer_seq":(\d+)\}$/;
const SINCE_VERSION_2 = [
  '{"type":"toolCallDecision"',
  '{"type":"toolDefinitions"',
  '{"type":"toolExecutionEnd","call_state":"waiting"',
  '{"type":"toolExecutionEnd","call_state":"working"',
].map((text) => Buffer.from(text));

/** Numbers from `start` up to, but without, `stop`. */
export interface Range {
  start: number;
  stop: number;
}

/** How many numbers these are. */
export function total(ranges: Iterable<Range>): number {
  let sum = 0;
  for (const range of ranges) sum += range.stop - range.start;
  return sum;
}

/** The whole lines of a segment, and the numbers of the damaged or missing ones. */
export interface Salvage {
  lines: Buffer[];
  lost: Range[];
}

/** Makes the line for one JSON object, with its checksum. */
export function sealLine(text: string | Buffer): Buffer {
  const size = Buffer.byteLength(text);
  const line = Buffer.allocUnsafe(size + LINE_OVERHEAD);
  if (typeof text === "string") line.write(text, 0, size);
  else text.copy(line);
  endLine(line, size);
  return line;
}

/** The same in memory that the next such line overwrites. Each call writes two lines. */
export function sealBriefly(text: string): Buffer {
  if (text.length * 3 + LINE_OVERHEAD > room.length) return sealLine(text);
  const size = room.write(text);
  const line = room.subarray(0, size + LINE_OVERHEAD);
  endLine(line, size);
  return line;
}

function endLine(line: Buffer, size: number): void {
  const sum = crc32(line.subarray(0, size));
  line[size] = TAB;
  for (let digit = 0; digit < 8; digit++) line[size + 1 + digit] = DIGITS.charCodeAt((sum >>> (28 - digit * 4)) & 15);
  line[size + 9] = LINE_FEED;
}

function checksum(text: Buffer): string {
  return crc32(text).toString(16).padStart(8, "0");
}

/** Extracts the JSON objects from lines known to be whole, without checking them. */
export function openLines(data: Buffer): Buffer[] {
  const lines: Buffer[] = [];
  for (const line of split(data)) lines.push(line.subarray(0, line.length - LINE_OVERHEAD + 1));
  return lines;
}

function* split(data: Buffer): Generator<Buffer> {
  let start = 0;
  while (start < data.length) {
    const found = data.indexOf(LINE_FEED, start);
    const end = found < 0 ? data.length : found;
    if (end > start) yield data.subarray(start, end);
    start = end + 1;
  }
}

/**
 * Checks every line of a segment that begins with number `firstSeq`.
 *
 * Numbers are contiguous, so a gap between two whole lines shows exactly what was lost. Damage after
 * the last whole line counts as one number per damaged line, or more if the segment is known to have
 * had `count` lines.
 */
export function salvage(data: Buffer, firstSeq: number, count = 0): Salvage {
  const lines: Buffer[] = [];
  const lost: Range[] = [];
  let expected = firstSeq;
  let damagedTail = 0;
  for (const line of split(data)) {
    const tab = line.length - LINE_OVERHEAD + 1;
    const text = line.subarray(0, Math.max(tab, 0));
    if (tab < 0 || line[tab] !== TAB || line.toString("latin1", tab + 1) !== checksum(text)) {
      damagedTail += 1;
      continue;
    }
    lines.push(text);
    const seq = numberOf(text);
    if (seq === undefined) continue; // a gap line, which has no number of its own
    if (damagedTail > 0 && seq > expected) lost.push({ start: expected, stop: seq });
    expected = seq + 1;
    damagedTail = 0;
  }
  const missing = count - lines.length - total(lost);
  if (damagedTail > 0 || missing > 0) {
    lost.push({ start: expected, stop: expected + Math.max(damagedTail, missing) });
  }
  return { lines, lost };
}

function tailOf(line: Buffer): string {
  return line.toString("utf8", Math.max(line.length - TAIL_BYTES, 0));
}

function numberOf(line: Buffer): number | undefined {
  const match = NUMBER.exec(tailOf(line));
  return match ? Number(match[1]) : undefined;
}

/** The numbers in these lines by producer, as contiguous ranges. */
export function numbers(lines: Iterable<Buffer>): Map<string, Range[]> {
  const byProducer = new Map<string, Range[]>();
  for (const line of lines) {
    const match = PRODUCER.exec(tailOf(line));
    if (!match) continue;
    const producer = match[1] ?? "";
    const seq = Number(match[2]);
    const ranges = byProducer.get(producer) ?? [];
    byProducer.set(producer, ranges);
    const last = ranges.at(-1);
    if (last?.stop === seq) last.stop = seq + 1;
    else ranges.push({ start: seq, stop: seq + 1 });
  }
  return byProducer;
}

/** The first number in these lines, or `otherwise` if no line has one. */
export function firstNumber(lines: Iterable<Buffer>, otherwise: number): number {
  for (const line of lines) {
    const seq = numberOf(line);
    if (seq !== undefined) return seq;
  }
  return otherwise;
}

/** Whether a server of version 1 of the contract does not understand this line. */
export function isSinceVersion2(line: Buffer): boolean {
  return SINCE_VERSION_2.some((head) => line.subarray(0, head.length).equals(head));
}
