/** Asks the same again and again, one question after the other, and notes every answer and how long it took. */
import { setTimeout as delay } from 'node:timers/promises';
import type { HttpResponse } from '../client.js';

export interface ProbeAnswer {
  readonly status: number;
  /** The stable code of a failure. */
  readonly code: string | undefined;
  /** Of `performance.now()`. */
  readonly askedAt: number;
  readonly ms: number;
}

export interface Probe {
  /** The answers to what was asked after this moment. */
  since(moment: number): readonly ProbeAnswer[];
  stop(): Promise<void>;
}

const EVERY_MS = 100;

export function startProbe(ask: () => Promise<HttpResponse>): Probe {
  const answers: ProbeAnswer[] = [];
  let isOver = false;
  const asking = (async () => {
    while (!isOver) {
      const askedAt = performance.now();
      const { status, body } = await ask();
      const code = (body as { code?: string } | undefined)?.code;
      answers.push({ status, code, askedAt, ms: performance.now() - askedAt });
      await delay(EVERY_MS);
    }
  })();
  return {
    since: (moment) => answers.filter(({ askedAt }) => askedAt >= moment),
    stop: async () => {
      isOver = true;
      await asking;
    },
  };
}
