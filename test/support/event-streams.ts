/** Very many streams of server-sent events, read by a separate process: see `connections.ts`. */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { eventually } from './eventually.js';

/** What the clients have seen. */
export interface EventCounts {
  /** Streams whose head has come, and that have not ended. */
  readonly open: number;
  /** Streams that have come to their end. */
  readonly complete: number;
  /** Streams that were refused, or have ended before their end. */
  readonly broken: number;
  /** Events of all streams. */
  readonly events: number;
  /** Events of the open stream that has got fewest. */
  readonly fewest: number;
  /** Events whose id is not the one after that of the event before. */
  readonly misplaced: number;
  /** From when the handler made an event until it was here, milliseconds. */
  readonly delay: { readonly p50: number; readonly p99: number; readonly most: number };
}

export interface EventStreams {
  /** As of the last half of a second. */
  counts(): EventCounts;
  /** Waits until the counts pass. */
  until(holds: (counts: EventCounts) => boolean, limitMs?: number): Promise<EventCounts>;
  /** Closes all connections. */
  end(): Promise<void>;
}

/**
 * Opens streams on connections of their own. Their events have ids from 1 on, and as data when they were made,
 * microseconds since 1970, as those of `TICKING_EVENTS` do.
 */
export async function openEventStreams(url: string, count: number): Promise<EventStreams> {
  const child = fork(fileURLToPath(new URL('./event-streams-child.js', import.meta.url)), [
    url,
    String(count),
  ]);
  let counts: EventCounts = {
    ...{ open: 0, complete: 0, broken: 0, events: 0, fewest: 0, misplaced: 0 },
    delay: { p50: 0, p99: 0, most: 0 },
  };
  child.on('message', (message: EventCounts) => {
    counts = message;
  });
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  return {
    counts: () => counts,
    until: (holds, limitMs) =>
      eventually(() => {
        if (!holds(counts)) throw new Error(`The streams are ${JSON.stringify(counts)}`);
        return counts;
      }, limitMs),
    end: async () => {
      child.kill();
      await ended;
    },
  };
}
