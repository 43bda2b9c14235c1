/** Repeats one request, sequentially, and keeps all responses. */
import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '../eventually.js';

/** Responses in the order of the requests. */
export interface Probe<T> {
  /** Resolves after this many more responses. */
  more(count: number): Promise<readonly T[]>;
  /** Resolves when the response to a later request passes, including the response before it. */
  until(passes: (answer: T) => boolean): Promise<readonly T[]>;
  /** Stops the requests. */
  stop(): Promise<readonly T[]>;
}

/** The pause between requests, so that they cause no load. */
const PAUSE_MS = 50;

export function startProbe<T>(ask: () => Promise<T>): Probe<T> {
  const answers: T[] = [];
  let asked = 0;
  let isOver = false;
  const asking = (async () => {
    while (!isOver) {
      asked++;
      answers.push(await ask());
      await delay(PAUSE_MS);
    }
  })();
  // A failure is reported to the waiting caller.
  asking.catch(() => undefined);
  const wait = (isEnough: (since: readonly T[]) => boolean) => {
    const from = asked;
    return Promise.race([
      eventually(() => {
        const since = answers.slice(from);
        if (!isEnough(since)) throw new Error(`not yet: ${JSON.stringify(since.slice(-3))}`);
        return since;
      }),
      asking.then(() => answers.slice(from)),
    ]);
  };
  return {
    more: (count) => wait((since) => since.length >= count),
    until: (passes) => wait((since) => since.some(passes)),
    stop: async () => {
      isOver = true;
      await asking;
      return answers;
    },
  };
}
