/**
 * Tells whether a text may hold a secret: the search that every payload pays for. What it finds is only a
 * trace, so that `redact` must look closer.
 */

/** What each secret leaves in JSON text, at least, in any case of letters. */
const TRACES = [
  "pass", "pwd", "secret", "credential", "auth", "cookie", "key", "token", "jwt", "bearer", "-begin", "eyj", "akia",
  "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "sk-", "tt_", "\\u00",
];
export const URL_WITH_PASSWORD = String.raw`:\/\/[^\s\/?#:@]{0,80}:[^\s\/?#@]{1,200}@`;
const URL_START = "://";
const FOLD = 31; // the low bits, in which both cases of a letter are equal

const buffer = Buffer.allocUnsafeSlow(64 * 1024);
/** The same bytes, two at a time. */
const pairsOf = new Uint16Array(buffer.buffer);

/** The traces of the built-in secrets, and those of a user's rules. */
export class Traces {
  /** Finds what `areIn` finds; slower. */
  readonly pattern: RegExp;
  readonly #here: RegExp;
  /** By two bytes, as the machine orders them: whether a trace has them first, or from its second place on. */
  readonly #isPair = new Uint8Array(256 * 256);
  /** By three folded characters: whether a trace begins with them. */
  readonly #heads = new Uint8Array(32 * 32 * 32);
  readonly #isQuick: boolean;

  /** `own`: further traces, of letters and digits. */
  constructor(own: readonly string[]) {
    const texts = [...TRACES, ...own];
    const source = [...texts.map((text) => text.replace("\\", "\\\\")), URL_WITH_PASSWORD].join("|");
    this.pattern = new RegExp(source, "i");
    this.#here = new RegExp(source, "iy");
    this.#isQuick = own.every((text) => text.length >= 3);
    for (const text of [...texts, URL_START]) {
      buffer.write(text);
      this.#heads[headAt(0)] = 1;
      for (const pair of [text.slice(0, 2), text.slice(1, 3)]) {
        for (const one of bothCases(pair.charAt(0))) {
          for (const two of bothCases(pair.charAt(1))) {
            buffer.write(one + two);
            this.#isPair[pairsOf[0] ?? 0] = 1;
          }
        }
      }
    }
  }

  /**
   * Whether a trace is in the text. The text is searched as bytes, every second pair of them: each trace has a
   * pair in its first three. A fifth of the time of the pattern.
   */
  areIn(text: string): boolean {
    if (!this.#isQuick || text.length * 3 > buffer.length - 2) return this.pattern.test(text);
    const size = buffer.write(text);
    buffer[size] = buffer[size + 1] = 0;
    const isPair = this.#isPair;
    for (let at = 0; at < size; at += 2) {
      if (isPair[pairsOf[at >> 1] ?? 0] === 0) continue;
      const isHead = this.#heads[headAt(at)] === 1;
      const isTail = at > 0 && this.#heads[headAt(at - 1)] === 1;
      if (!isHead && !isTail) continue;
      // Places in bytes and in characters differ: rare enough to search the whole text.
      if (size !== text.length) return this.pattern.test(text);
      if ((isHead && this.#isAt(text, at)) || (isTail && this.#isAt(text, at - 1))) return true;
    }
    return false;
  }

  #isAt(text: string, at: number): boolean {
    this.#here.lastIndex = at;
    return this.#here.test(text);
  }
}

function headAt(at: number): number {
  return (((buffer[at] ?? 0) & FOLD) << 10) | (((buffer[at + 1] ?? 0) & FOLD) << 5) | ((buffer[at + 2] ?? 0) & FOLD);
}

function bothCases(letter: string): string[] {
  return [letter.toLowerCase(), letter.toUpperCase()];
}
