/** Very many connections, held by a separate process, so that file descriptors and the event loop here stay free. */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { eventually } from './eventually.js';

/** The states of the connections. */
export interface FloodCounts {
  readonly open: number;
  /** Responses with this status so far. */
  readonly answered: Readonly<Record<string, number>>;
  readonly closed: number;
}

export interface Flood {
  /** As of the last tenth of a second. */
  counts(): FloodCounts;
  /** Waits until the counts pass. */
  until(holds: (counts: FloodCounts) => boolean, limitMs?: number): Promise<FloodCounts>;
  end(): Promise<void>;
}

/** Opens connections. Each `askEvery`th sends one request; the others send nothing. */
export async function openConnections(url: string, count: number, askEvery: number): Promise<Flood> {
  const child = fork(fileURLToPath(new URL('./connections-child.js', import.meta.url)), [
    url,
    String(count),
    String(askEvery),
  ]);
  let counts: FloodCounts = { open: 0, answered: {}, closed: 0 };
  child.on('message', (message: FloodCounts) => {
    counts = message;
  });
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  return {
    counts: () => counts,
    until: (holds, limitMs) =>
      eventually(() => {
        if (!holds(counts)) throw new Error(`The connections are ${JSON.stringify(counts)}`);
        return counts;
      }, limitMs),
    end: async () => {
      child.kill();
      await ended;
    },
  };
}
