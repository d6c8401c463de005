/** The producer of one thread: its spool, and the shipper that empties it. */
import { Announcer } from "./announcer.js";
import type { Settings } from "./settings.js";
import { Shipper } from "./shipper.js";
import { makeRoot } from "./spool/home.js";
import { Spool, SPILL_BYTES } from "./spool/spool.js";
import type { Stats } from "./stats.js";
import { Transport } from "./transport.js";
import { VERSION } from "./version.js";

const STOP_MS = 500;

export class Producer {
  readonly spool: Spool;
  readonly shipper: Shipper;

  constructor(settings: Settings, announcer: Announcer, warn: (message: string) => void) {
    const mustKeep = settings.whenFull === "raise";
    const root = rootOf(settings, warn);
    const inMemory = root === undefined;
    let shipper: Shipper | undefined = undefined;
    this.spool = new Spool({
      root,
      maxBytes: inMemory && mustKeep && settings.spool !== "memory" ? 0 : settings.maxBytes,
      fsync: settings.spool === "fsync",
      // With whenFull "raise", a tool must not run if its record would be in memory only.
      spillBytes: inMemory ? settings.maxBytes : mustKeep ? 0 : SPILL_BYTES,
      onReady: () => shipper?.wake(),
      warn,
    });
    const transport = new Transport(settings.url, settings.apiKey, `tooltrail-js/${VERSION}`);
    shipper = new Shipper(this.spool, transport, announcer, {
      maxAgeDays: settings.maxAgeDays, keepsAll: mustKeep, warn,
    });
    this.shipper = shipper;
  }

  /** Tries to send what is waiting, and leaves the rest for another process. */
  async close(timeout: number): Promise<boolean> {
    this.spool.adopt();
    const isSent = await this.shipper.flush(timeout, true);
    await this.shipper.stop(STOP_MS);
    this.spool.close();
    return isSent;
  }

  stats(): Stats {
    const { emitted, adopted, inMemory, waiting, dropped } = this.spool;
    const { acknowledged, duplicates, rejected } = this.shipper;
    const lost = Object.fromEntries(dropped);
    return { emitted, adopted, acknowledged, duplicates, rejected, inMemory, waiting, dropped: lost };
  }
}

function rootOf(settings: Settings, warn: (message: string) => void): string | undefined {
  if (settings.spool === "memory") return undefined;
  try {
    return makeRoot(settings.spoolDir, settings.url, settings.apiKey);
  } catch (error) {
    const reason = error instanceof Error ? ((error as NodeJS.ErrnoException).code ?? error.name) : "Error";
    const then = settings.whenFull === "raise" ? "tools do not run" : "events are kept in memory only";
    warn(`cannot create a spool file (${reason}), so ${then}`);
    return undefined;
  }
}
