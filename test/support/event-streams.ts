/** Very many streams of server-sent events, read by a separate process. */
import { fileURLToPath } from 'node:url';
import { type CountingChild, startCounting } from './counting-child.js';

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

export type EventStreams = CountingChild<EventCounts>;

/**
 * Opens streams on connections of their own. Their events have ids from 1 on, and as data when they were made,
 * microseconds since 1970, as those of `TICKING_EVENTS` do.
 */
export function openEventStreams(url: string, count: number): EventStreams {
  const script = fileURLToPath(new URL('./event-streams-child.js', import.meta.url));
  return startCounting<EventCounts>(script, [url, count], 'streams', {
    ...{ open: 0, complete: 0, broken: 0, events: 0, fewest: 0, misplaced: 0 },
    delay: { p50: 0, p99: 0, most: 0 },
  });
}
