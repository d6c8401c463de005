/** HTTP requests to one server with one key, and the server's answers. Nothing is retried here. */
import { promisify } from "node:util";
import { gzip } from "node:zlib";

const compress = promisify(gzip);
const REQUEST_MS = 35_000;
const RETRY_AFTER_MAX_MS = 600_000; // a longer Retry-After is shortened to this

/** No complete answer arrived. The message names the kind of failure, without payloads. */
export class UnreachableError extends Error {}

/** `retryAfter` is in milliseconds. `contract` is the server's version of the wire contract. */
export interface Answer {
  status: number;
  document: Record<string, unknown>;
  retryAfter: number | undefined;
  contract: number;
}

export class Transport {
  readonly #url: string;
  readonly #headers: Record<string, string>;

  constructor(url: string, apiKey: string, userAgent: string) {
    this.#url = url.replace(/\/+$/, "");
    this.#headers = { authorization: `Bearer ${apiKey}`, "user-agent": userAgent };
  }

  /** Sends one batch. Throws UnreachableError. */
  async postEvents(lines: Buffer[], batchId: string): Promise<Answer> {
    const feed = Buffer.from("\n");
    const body = Buffer.concat(lines.flatMap((line) => [line, feed]));
    // Level 1, because the processor belongs to the host.
    return this.#request("POST", "/api/v1/events", await compress(body, { level: 1 }), {
      "content-type": "application/x-ndjson",
      "content-encoding": "gzip",
      "idempotency-key": batchId,
    });
  }

  /** Asks for the server's version of the wire contract. Throws UnreachableError. */
  askContract(): Promise<Answer> {
    return this.#request("GET", "/api/v1/events", undefined, {});
  }

  /** Announces tools. Throws UnreachableError. */
  postTools(tools: unknown[]): Promise<Answer> {
    const body = Buffer.from(JSON.stringify({ tools }));
    return this.#request("POST", "/api/v1/tools", body, { "content-type": "application/json" });
  }

  async #request(
    method: string, path: string, body: Buffer | undefined, headers: Record<string, string>,
  ): Promise<Answer> {
    try {
      const response = await fetch(this.#url + path, {
        method,
        ...(body && { body: new Uint8Array(body) }),
        headers: { ...this.#headers, ...headers },
        redirect: "manual",
        signal: AbortSignal.timeout(REQUEST_MS),
      });
      return {
        status: response.status,
        document: documentIn(await response.text()),
        retryAfter: retryAfterMs(response.headers.get("retry-after")),
        contract: versionIn(response.headers.get("tooltrail-contract")),
      };
    } catch (error) {
      throw new UnreachableError(kindOf(error));
    }
  }
}

function kindOf(error: unknown): string {
  if (!(error instanceof Error)) return "Error";
  const { cause } = error;
  const code = cause instanceof Error ? (cause as NodeJS.ErrnoException).code : undefined;
  return code ?? error.name;
}

function documentIn(text: string): Record<string, unknown> {
  try {
    const document = JSON.parse(text) as unknown;
    const isObject = typeof document === "object" && document !== null && !Array.isArray(document);
    return isObject ? (document as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function versionIn(header: string | null): number {
  return header !== null && /^\d{1,9}$/.test(header) ? Number(header) : 1;
}

/** Milliseconds from a Retry-After header, which holds seconds or a date. */
export function retryAfterMs(header: string | null, now: number = Date.now()): number | undefined {
  if (header === null || header.trim() === "") return undefined;
  const seconds = Number(header);
  const ms = Number.isNaN(seconds) ? Date.parse(header) - now : seconds * 1000;
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, 0), RETRY_AFTER_MAX_MS);
}
