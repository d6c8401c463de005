/**
 * Finds secrets by name inside texts: in JSON, in pairs such as `name=value`, in lines such as
 * `Authorization: Basic …`; and the password of a URL. All other characters stay unchanged. The rules
 * are those of the Python SDK (`tooltrail.redact_text`); shared vectors compare them.
 */

export const MARK = "[redacted]";
/** The nesting limit for JSON in a text in JSON in a text …; deeper texts are removed whole. */
export const TEXTS_DEEP_MAX = 8;

const MARK_JSON = JSON.stringify(MARK);
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{},:]|[^\s"[\]{},:]+/gs;
const W = String.raw`[\p{L}\p{N}_-]`;
// One of: a quoted name and a colon or arrow, as in truncated JSON and in the reprs of Python and
// Ruby; a bare name in an object, as JavaScript prints it; a bare name and an equals sign; a line of
// YAML or a header, whose value is one word or two, words that end in semicolons, or quoted; the user
// of a URL before its password. All repetitions are bounded, so the time is linear.
const NAME = new RegExp(
  String.raw`(?<quote>\\{0,15}["'])(?<quoted>[^"'\\]{1,80})\k<quote>\s{0,20}(?::|=>)\s{0,20}` +
    String.raw`|[{,]\s{0,20}(?<member>${W}{1,80})\s{0,20}:\s{0,20}(?=\\{0,15}["'])` +
    String.raw`|(?<!${W})(?<bare>${W}{1,80})(?::?=>?|[ \t]{1,20}(?:=>|:?=(?!=)))[ \t]{0,20}` +
    String.raw`|(?<![^\n])[ \t]{0,40}(?:[->][ \t]{1,4})?(?<line>${W}{1,80}):[ \t]{1,20}` +
    String.raw`(?=(?:[^\s"'\{\[;]{1,999};[ \t]){0,20}` +
    String.raw`[^\s"'\{\[][^\s]{0,999}(?:[ \t][^\s]{1,999})?[ \t]{0,9}\r?(?![^\n])|["'])` +
    String.raw`|:\/\/[^\s\/?#:@"']{0,80}(?<user>:)(?=[^\s\/?#@"']{1,200}@)`,
  "gu",
);
const LINE_VALUE = /[^\r\n]*/y;
const PASSWORD = /[^@]*/y;
const PROSE = ["token", "auth", "jwt", "bearer"]; // `token: unexpected`
const QUOTE = /(?<!\\)(\\*)(["'])/g;
const OPENING = /[A-Za-z]{0,2}(\\*)(["'])/y; // also Python's b'…'
const BARE_VALUE = /[^\s,;&"'}\])]*/y;
const OPENED = /[[({]/g;
const BRACKET = /\\.|["'()[\]{}]/gs;

/** What counts as a secret. Implemented by `Redactor`. */
export interface Rules {
  isSecretName(name: string): boolean;
  /** The text without secrets, and the reason if it was changed. */
  cleanText(text: string, deep?: number): [string, string | undefined];
}

/** Whether a text starts like JSON that can contain texts. */
export function isJsonLike(text: string): boolean {
  return /^\s*["[{]/.test(text);
}

/** The text without the values of secret names: the same text if it has none. */
export function withoutNamed(rules: Rules, text: string, deep: number): string {
  if (isJsonLike(text) && isJson(text)) return cleanJson(rules, text, deep + 1);
  return withoutPairs(rules, text);
}

/** Whether a text is JSON, as lenient readers see it: control characters may be inside texts. */
function isJson(text: string): boolean {
  try {
    // eslint-disable-next-line no-control-regex
    JSON.parse(text.replace(/[\0-\x1f]/g, " "));
    return true;
  } catch {
    return false;
  }
}

/** Well-formed JSON without its secrets. */
function cleanJson(rules: Rules, text: string, deep: number): string {
  const parts: string[] = [];
  let copiedTo = 0;
  for (const [start, end, instead] of replacements(rules, text, deep)) {
    parts.push(text.slice(copiedTo, start), instead);
    copiedTo = end;
  }
  return parts.length > 0 ? parts.join("") + text.slice(copiedTo) : text;
}

function* replacements(rules: Rules, text: string, deep: number): Generator<[number, number, string]> {
  const open: { isObject: boolean; name: string }[] = [];
  let awaitsName = false;
  let hiddenAt = -1;
  let hiddenDepth = -1;
  for (const match of text.matchAll(TOKEN)) {
    const token = match[0];
    const first = token[0];
    const end = match.index + token.length;
    const inside = open.at(-1);
    if (first === ":") continue;
    if (first === ",") {
      awaitsName = inside?.isObject ?? false;
      continue;
    }
    if (first === "]" || first === "}") {
      open.pop();
      awaitsName = false;
      if (open.length === hiddenDepth) {
        yield [hiddenAt, end, MARK_JSON];
        hiddenAt = hiddenDepth = -1;
      }
      continue;
    }
    if (awaitsName && inside) {
      inside.name = textOf(token);
      awaitsName = false;
      continue;
    }
    const isContainer = first === "[" || first === "{";
    if (hiddenDepth < 0) {
      const isNamed = inside?.isObject === true && rules.isSecretName(inside.name);
      if (isContainer) {
        if (isNamed) [hiddenAt, hiddenDepth] = [match.index, open.length];
      } else if (isNamed && first !== "n") yield [match.index, end, MARK_JSON];
      else if (first === '"') {
        const value = textOf(token);
        const [cleaned] = rules.cleanText(value, deep);
        if (cleaned !== value) yield [match.index, end, JSON.stringify(cleaned)];
      }
    }
    if (isContainer) {
      open.push({ isObject: first === "{", name: "" });
      awaitsName = first === "{";
    }
  }
}

function textOf(token: string): string {
  if (!token.includes("\\")) return token.slice(1, -1);
  // eslint-disable-next-line no-control-regex
  const escaped = token.replace(/[\0-\x1f]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
  return JSON.parse(escaped) as string;
}

/** A text that is not JSON without the values of secret names. */
function withoutPairs(rules: Rules, text: string): string {
  const parts: string[] = [];
  let copiedTo = 0;
  const names = new RegExp(NAME);
  for (let match = names.exec(text); match; match = names.exec(text)) {
    const [start, end] = secretAfter(rules, text, match, names.lastIndex);
    names.lastIndex = end;
    if (start < end) {
      parts.push(text.slice(copiedTo, start), MARK);
      copiedTo = end;
    }
  }
  return parts.length > 0 ? parts.join("") + text.slice(copiedTo) : text;
}

/** Where the secret after a match of `NAME` begins and ends; empty if there is none. */
function secretAfter(rules: Rules, text: string, match: RegExpExecArray, start: number): [number, number] {
  const { line, quoted, member, bare, user, quote } = match.groups ?? {};
  const name = line ?? quoted ?? member ?? bare ?? "password";
  if (!rules.isSecretName(name) || (line !== undefined && PROSE.includes(line.toLowerCase()))) {
    return [start, start];
  }
  const next = text[start];
  let value: string;
  if (user !== undefined) value = matchAt(PASSWORD, text, start);
  else if (line !== undefined && next !== '"' && next !== "'") value = matchAt(LINE_VALUE, text, start);
  else return valueAt(text, start, quote?.includes("\\") ?? false);
  return [start, value.includes(MARK) ? start : start + value.length];
}

function matchAt(pattern: RegExp, text: string, at: number): string {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? "";
}

/**
 * Where the value after a name begins and ends; `isEscaped`: the name's quotes are escaped. An
 * unclosed value, and a container among escapes, extends to the end of the text.
 */
function valueAt(text: string, start: number, isEscaped: boolean): [number, number] {
  OPENING.lastIndex = start;
  const opening = OPENING.exec(text);
  if (!opening) {
    if (text.startsWith(MARK, start)) return [start, start];
    const end = start + matchAt(BARE_VALUE, text, start).length;
    // `Login(user='ada', …)` is a container, too.
    OPENED.lastIndex = start;
    const opened = OPENED.exec(text.slice(0, end));
    if (opened) return [start, isEscaped ? text.length : closedAt(text, opened.index)];
    return [start, end];
  }
  const from = OPENING.lastIndex;
  const quotes = new RegExp(QUOTE);
  quotes.lastIndex = from;
  for (let closing = quotes.exec(text); closing; closing = quotes.exec(text)) {
    const isShorter = (closing[1] ?? "").length <= (opening[1] ?? "").length;
    if (closing[2] === opening[2] && isShorter) return [from, closing.index];
  }
  return [from, text.length];
}

/** Where the container at `start` ends; the end of the text if it is not closed. */
function closedAt(text: string, start: number): number {
  let depth = 0;
  let quote = "";
  const brackets = new RegExp(BRACKET);
  brackets.lastIndex = start;
  for (let match = brackets.exec(text); match; match = brackets.exec(text)) {
    const sign = match[0];
    if (sign === '"' || sign === "'") quote = sign === quote ? "" : quote === "" ? sign : quote;
    else if (quote !== "" || sign.startsWith("\\")) continue;
    else {
      depth += "([{".includes(sign) ? 1 : -1;
      if (depth === 0) return match.index + 1;
    }
  }
  return text.length;
}
