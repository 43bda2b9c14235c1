/** Very many connections, held by a separate process. */
import { fileURLToPath } from 'node:url';
import { type CountingChild, startCounting } from './counting-child.js';

/** The states of the connections. */
export interface FloodCounts {
  readonly open: number;
  /** Responses with this status so far. */
  readonly answered: Readonly<Record<string, number>>;
  readonly closed: number;
}

export type Flood = CountingChild<FloodCounts>;

/** Opens connections. Each `askEvery`th sends one request; the others send nothing. */
export function openConnections(url: string, count: number, askEvery: number): Flood {
  const script = fileURLToPath(new URL('./connections-child.js', import.meta.url));
  const first = { open: 0, answered: {}, closed: 0 };
  return startCounting<FloodCounts>(script, [url, count, askEvery], 'connections', first);
}
