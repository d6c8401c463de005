/** Announces this process's tools to the server's registry, each once, digests first. */
import { canonicalStringify, sha256 } from "./canonical.js";
import { type Plain, toPlain } from "./plain.js";
import type { Answer, Transport } from "./transport.js";

const TOOLS_PER_POST = 100;
const RETRY_MS = 60_000;

/** How a tool is described to the registry. Schemas are JSON Schema. */
export interface ToolContract {
  name: string;
  description?: string | undefined;
  inputSchema?: unknown;
  outputSchema?: unknown;
}

interface Announcement {
  digest: string;
  body: Record<string, unknown>;
}

export class Announcer {
  readonly #warn: (message: string) => void;
  readonly #seen = new Set<string>();
  #waiting: Announcement[] = [];
  #retryAt = 0;
  #isRefused = false;

  constructor(warn: (message: string) => void) {
    this.#warn = warn;
  }

  /** Queues a tool and returns its digest, the same as the Python SDK's. */
  add(contract: ToolContract): string {
    const members: Record<string, Plain> = {
      name: contract.name,
      description: contract.description ?? contract.name,
      input_schema: contract.inputSchema === undefined ? { type: "object" } : toPlain(contract.inputSchema),
      output_schema: contract.outputSchema === undefined ? null : toPlain(contract.outputSchema),
      trusted: false,
      ephemeral: false,
      on_collision: "throw",
    };
    const digest = `sha256:${sha256(canonicalStringify(members))}`;
    if (!this.#seen.has(digest)) {
      this.#seen.add(digest);
      this.#waiting.push({ digest, body: { ...members, meta: {}, digest } });
    }
    return digest;
  }

  /** Announces the queued tools, at most 100. Throws UnreachableError. */
  async announce(transport: Transport): Promise<void> {
    if (this.#isRefused || this.#waiting.length === 0 || performance.now() < this.#retryAt) return;
    const tools = this.#waiting.slice(0, TOOLS_PER_POST);
    let answer = await transport.postTools(tools.map(({ digest }) => ({ digest })));
    const unknown = answer.document["unknown"];
    if (answer.status === 200 && Array.isArray(unknown)) {
      const wanted = tools.filter(({ digest }) => unknown.includes(digest)).map(({ body }) => body);
      if (wanted.length > 0) answer = await transport.postTools(wanted);
    }
    this.#heed(answer, tools.length);
  }

  #heed(answer: Answer, count: number): void {
    const { status } = answer;
    const refused = answer.document["refused"];
    for (const each of (Array.isArray(refused) ? refused : []) as { name?: unknown; message?: unknown }[]) {
      this.#warn(`the registry rejected ${String(each.name)}: ${String(each.message)}`);
    }
    // 409: it refused all, as all names are taken.
    const isFinal = status >= 400 && status < 500 && ![408, 409, 425, 429].includes(status);
    if (status === 200 || status === 409 || isFinal) this.#waiting.splice(0, count);
    else this.#retryAt = performance.now() + RETRY_MS;
    if (isFinal) {
      this.#isRefused = true;
      this.#warn(`the registry accepts no tools from this key (${status})`);
    }
  }
}
