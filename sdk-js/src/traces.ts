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

/** The traces of the built-in secrets, and those of a user's rules. */
export class Traces {
  /** Finds what `areIn` finds; slower. */
  readonly pattern: RegExp;
  readonly #here: RegExp;
  /** By two folded characters: whether a trace has them first, or in its second place. */
  readonly #pairs = new Uint8Array(32 * 32);
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
      const [one, two, three] = [0, 1, 2].map((at) => text.charCodeAt(at) & FOLD) as [number, number, number];
      this.#pairs[(one << 5) | two] = this.#pairs[(two << 5) | three] = 1;
      this.#heads[(one << 10) | (two << 5) | three] = 1;
    }
  }

  /**
   * Whether a trace is in the text. The text is searched as bytes, every second pair of them: each trace has a
   * pair in its first three. A third of the time of the pattern.
   */
  areIn(text: string): boolean {
    if (!this.#isQuick || text.length * 3 > buffer.length - 2) return this.pattern.test(text);
    const size = buffer.write(text);
    buffer[size] = buffer[size + 1] = 0;
    const pairs = this.#pairs;
    for (let at = 0; at < size; at += 2) {
      const pair = ((byte(at) & FOLD) << 5) | (byte(at + 1) & FOLD);
      if (pairs[pair] === 0) continue;
      const isHead = this.#heads[(pair << 5) | (byte(at + 2) & FOLD)] === 1;
      const isTail = at > 0 && this.#heads[((byte(at - 1) & FOLD) << 10) | pair] === 1;
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

function byte(at: number): number {
  return buffer[at] ?? 0;
}
