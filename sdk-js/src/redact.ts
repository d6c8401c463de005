/**
 * Removes secrets from payloads before anything is written anywhere: members by name, places by
 * path, texts by pattern. Each removal leaves a mark in its place and a note. The rules are those of
 * the Python SDK (`tooltrail.redact`); shared vectors compare them.
 */
import { type Plain, toPlain } from "./plain.js";
import { isJsonLike, MARK, type Rules, TEXTS_DEEP_MAX, withoutNamed } from "./redactText.js";
import { Traces } from "./traces.js";

export interface Note {
  path: string;
  reason: string;
}

const NOTES_MAX = 100; // per payload; further removals are made, but not listed
const DEPTH_MAX = 56; // the server accepts 64 levels, and the event around the payload needs a few
const NAMES_REMEMBERED = 4096;

const SECRET_WORDS = [
  "password", "pass word", "passwd", "pwd", "passphrase", "secret", "secrets", "credential",
  "credentials", "authorization", "cookie", "cookies", "api key", "apikey", "private key", "access key",
];
const SECRET_ENDINGS = ["token", "auth", "jwt", "bearer"];

// Before a word, where Python's and Rust's `\b` know more letters than JavaScript's.
const B = String.raw`(?<![\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_C}])`;
const E = String.raw`(?![\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_C}])`;
/** Credentials in well-known forms. Each takes time that grows linearly with the text. */
const SECRET_PATTERNS: [string, RegExp][] = [
  ["private key", /-----BEGIN [A-Z ]*PRIVATE KEY-----/],
  // From its first dot: what is before it is searched backwards, so no character is seen twice.
  ["json web token", new RegExp(String.raw`\.(?<=${B}eyJ[0-9A-Za-z_-]{8,}\.)eyJ[0-9A-Za-z_-]{8,}\.`, "u")],
  ["bearer token", new RegExp(String.raw`${B}[bB][eE][aA][rR][eE][rR]\s+[0-9a-zA-Z_.~+\/-]{16}`, "u")],
  [
    "access key",
    new RegExp(
      String.raw`${B}AKIA[0-9A-Z]{16}${E}|${B}gh[pousr]_[0-9A-Za-z]{36}|${B}sk-[0-9A-Za-z_-]{20}` +
        String.raw`|${B}tt_[0-9a-f-]{32,36}_`,
      "u",
    ),
  ],
];

const WORD = /[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+/g;
const PATH_PART = /\.([^.[\]]+)|\[(\*|\d+)\]/g;

export interface RedactorOptions {
  /** Further names whose members are removed; `"iban"` also matches `customerIban`. */
  keys?: Iterable<string>;
  /** Places to remove, such as `$.args.customer.email` or `$.output.data[*].name`. */
  paths?: Iterable<string>;
  /**
   * Expressions searched for in every text, with the reason as key. They run on JavaScript's engine:
   * an expression that backtracks can take long on a hostile text.
   */
  patterns?: Record<string, RegExp | string>;
  /** False: do not use the built-in names and patterns. */
  defaults?: boolean;
}

/** Finds and removes secrets. Throws SyntaxError for an invalid pattern, TypeError for a path. */
export class Redactor implements Rules {
  readonly #words: string[];
  readonly #endings: string[];
  readonly #paths: string[][];
  readonly #patterns: [string, RegExp][];
  readonly #traces: Traces;
  readonly #hasOwnPatterns: boolean;
  readonly #verdicts = new Map<string, boolean>();

  constructor(options: RedactorOptions = {}) {
    const { keys = [], paths = [], patterns = {}, defaults = true } = options;
    const own = [...keys].map((key) => wordsOf(key).join(" ")).filter((key) => key !== "");
    // A plural is found by its singular. Endings have no plural: `max_tokens` is a number.
    this.#words = [...(defaults ? SECRET_WORDS : []), ...own].flatMap((word) => [` ${word} `, ` ${word}s `]);
    this.#endings = defaults ? SECRET_ENDINGS.map((word) => ` ${word} `) : [];
    this.#paths = [...paths].map(parsePath);
    const given = Object.entries(patterns).map(([reason, text]): [string, RegExp] => [reason, expression(text)]);
    this.#patterns = [...(defaults ? SECRET_PATTERNS : []), ...given];
    this.#hasOwnPatterns = given.length > 0;
    this.#traces = new Traces(own.map((key) => key.slice(0, Math.max(key.indexOf(" "), 0) || undefined)));
  }

  /**
   * Whether this JSON text certainly holds no secret. One search, made in every call. False only
   * means that `clean` must check: always with own patterns and paths.
   */
  hasNoTrace(text: string): boolean {
    return !(this.#hasOwnPatterns || this.#paths.length > 0 || this.#traces.areIn(text));
  }

  /** A copy of the value without its secrets, and a note for each removal. Throws for a cycle. */
  clean(value: unknown, path = "$"): [Plain, Note[]] {
    const notes: Note[] = [];
    const here = partsOf(path);
    const wanted = this.#paths
      .filter((parts) => parts.length > here.length && here.every((name, at) => fits(parts[at], name)))
      .map((parts) => parts.slice(here.length));
    return [this.#scrub(toPlain(value), path, wanted, DEPTH_MAX, notes), notes];
  }

  /** Whether a member with this name is a secret. */
  isSecretName(name: string): boolean {
    const known = this.#verdicts.get(name);
    if (known !== undefined) return known;
    const text = ` ${wordsOf(name).join(" ")} `;
    const verdict =
      this.#endings.some((ending) => text.endsWith(ending)) || this.#words.some((word) => text.includes(word));
    if (this.#verdicts.size >= NAMES_REMEMBERED) this.#verdicts.clear();
    this.#verdicts.set(name, verdict);
    return verdict;
  }

  cleanText(text: string, deep = 0): [string, string | undefined] {
    let left = text;
    // The user's patterns must search the members of JSON, too; the traces cover all others.
    if (this.#traces.pattern.test(text) || (this.#hasOwnPatterns && isJsonLike(text))) {
      if (deep > TEXTS_DEEP_MAX) return [MARK, "too deep"];
      left = withoutNamed(this, text, deep);
    } else if (!this.#hasOwnPatterns) return [text, undefined];
    const hit = this.#patterns.find(([, pattern]) => pattern.test(left));
    if (hit) return [MARK, hit[0]];
    return left === text ? [text, undefined] : [left, "name"];
  }

  /** Why a text about the value at `path` must be removed; undefined if it may stay. */
  reasonAt(path: string): string | undefined {
    const parts = partsOf(path);
    if (parts.some((name) => this.isSecretName(name))) return "name";
    const isWanted = this.#paths.some(
      (wanted) =>
        parts.every((name, at) => at >= wanted.length || fits(wanted[at], name)) &&
        wanted.slice(parts.length).every((part) => part === "*" || /^\d+$/.test(part)),
    );
    return isWanted ? "path" : undefined;
  }

  #scrub(value: Plain, path: string, wanted: string[][], depth: number, notes: Note[]): Plain {
    if (typeof value === "string") {
      const [text, reason] = this.cleanText(value);
      if (reason !== undefined) note(path, reason, notes);
      return text;
    }
    if (typeof value !== "object" || value === null) return value;
    if (depth === 0) return removed(path, "too deep", notes);
    const inside = (name: string, place: string, member: Plain, isMember: boolean): Plain => {
      const below = wanted.filter((parts) => fits(parts[0], name)).map((parts) => parts.slice(1));
      if (below.some((parts) => parts.length === 0)) return removed(place, "path", notes);
      if (isMember && this.isSecretName(name)) return removed(place, "name", notes);
      return this.#scrub(member, place, below, depth - 1, notes);
    };
    if (Array.isArray(value)) {
      return value.map((member, at) => inside(String(at), `${path}[${at}]`, member, false));
    }
    const scrubbed = Object.create(null) as Record<string, Plain>;
    for (const [name, member] of Object.entries(value)) {
      scrubbed[name] = inside(name, `${path}.${name}`, member, true);
    }
    return scrubbed;
  }
}

function fits(wanted: string | undefined, name: string): boolean {
  return wanted === "*" || wanted === name;
}

function removed(path: string, reason: string, notes: Note[]): string {
  note(path, reason, notes);
  return MARK;
}

function note(path: string, reason: string, notes: Note[]): void {
  if (notes.length < NOTES_MAX) notes.push({ path, reason });
}

/** The words of a name in any style: `dbPassword`, `DB_PASSWORD`, `x-api-key`. */
function wordsOf(name: string): string[] {
  return Array.from(name.matchAll(WORD), ([word]) => word.toLowerCase());
}

function partsOf(path: string): string[] {
  return Array.from(path.matchAll(PATH_PART), (match) => match[1] ?? match[2] ?? "");
}

function parsePath(path: string): string[] {
  const parts = partsOf(path);
  const spelled = `$${Array.from(path.matchAll(PATH_PART), ([part]) => part).join("")}`;
  if (parts.length === 0 || spelled !== path) {
    throw new TypeError(`not a path such as $.args.customer.email: ${path}`);
  }
  return parts;
}

function expression(pattern: RegExp | string): RegExp {
  if (typeof pattern === "string") return new RegExp(pattern, "u");
  return new RegExp(pattern.source, pattern.flags.replace(/[gy]/g, "")); // `test` must not remember
}
