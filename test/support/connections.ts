/** Very many connections, held by a separate process. */
import { fileURLToPath } from 'node:url';
import { type CountingChild, startCounting } from './counting-child.js';

/** The states of the connections. */
export interface FloodCounts {
  readonly open: number;
  /** Responses with this status so far. */
  readonly answered: Readonly<Record<string, number>>;
  /** Those that were closed without one, by how that was: for errors. */
  readonly unanswered: Readonly<Record<string, number>>;
  readonly closed: number;
}

export type Flood = CountingChild<FloodCounts>;

/**
 * Opens connections. Each `askEvery`th sends one request; the others send nothing.
 * @param atOnce so many that the server may not have accepted yet: they have to fit its backlog, of which the kernel
 * resets some when it is full for seconds
 */
export function openConnections(url: string, count: number, askEvery: number, atOnce = 200): Flood {
  const script = fileURLToPath(new URL('./connections-child.js', import.meta.url));
  const first = { open: 0, answered: {}, unanswered: {}, closed: 0 };
  return startCounting<FloodCounts>(script, [url, count, askEvery, atOnce], 'connections', first);
}
