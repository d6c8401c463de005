/** Closes the trails of this thread when it ends. */

interface Closable {
  close: () => Promise<boolean>;
}

const open = new Map<Closable, () => void>();
let isWatching = false;

/**
 * Closes a trail when the process has nothing left to do. `leave` closes its spool without sending:
 * after `process.exit()` only synchronous work is possible.
 */
export function atExit(trail: Closable, leave: () => void): void {
  open.set(trail, leave);
  if (isWatching) return;
  isWatching = true;
  process.on("beforeExit", () => {
    for (const each of open.keys()) {
      open.delete(each);
      void each.close();
    }
  });
  process.on("exit", () => {
    for (const close of open.values()) close();
  });
}
