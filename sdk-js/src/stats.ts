/** The counters of a trail. Apart, as the types of the package then need nothing of the spool. */

/** What happened to the events of this thread since it started. */
export interface Stats {
  /** Events recorded so far. */
  emitted: number;
  /** Events taken over from dead processes. */
  adopted: number;
  /** Events that the server has confirmed. */
  acknowledged: number;
  /** Confirmed events that the server already had. */
  duplicates: number;
  /** Confirmed events that the server rejected; they wait in its inbox. */
  rejected: number;
  /** Waiting events that are in no file. */
  inMemory: number;
  /** Events not confirmed yet, including the gap events that declare losses. */
  waiting: number;
  /** Lost events, counted by reason. */
  dropped: Record<string, number>;
}
