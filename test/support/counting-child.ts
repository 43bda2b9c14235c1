/** A separate process that holds very many connections, so that file descriptors and the event loop here stay free. */
import { fork } from 'node:child_process';
import { eventually } from './eventually.js';

export interface CountingChild<Counts> {
  /** As the process has said last. */
  counts(): Counts;
  /** Waits until the counts pass. */
  until(holds: (counts: Counts) => boolean, limitMs?: number): Promise<Counts>;
  /** Closes all connections. */
  end(): Promise<void>;
}

/**
 * Starts a process that sends its counts again and again.
 * @param what they count, for errors
 * @param first the counts until it has sent any
 */
export function startCounting<Counts>(
  script: string,
  args: readonly (string | number)[],
  what: string,
  first: Counts,
): CountingChild<Counts> {
  const child = fork(script, args.map(String));
  let counts = first;
  child.on('message', (message: Counts) => {
    counts = message;
  });
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  return {
    counts: () => counts,
    until: (holds, limitMs) =>
      eventually(() => {
        if (!holds(counts)) throw new Error(`The ${what} are ${JSON.stringify(counts)}`);
        return counts;
      }, limitMs),
    end: async () => {
      child.kill();
      await ended;
    },
  };
}
