/** A process that requests a URL every few milliseconds, and reports the response times since the last report. */
import { Agent } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { call } from '../../test/support/http.js';
import { median } from '../support/report.js';
import type { Waits } from './probe.js';

const EVERY_MS = 2;

const [, , url = ''] = process.argv;
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
let waits: number[] = [];
let isAsked = false;
process.on('message', () => {
  isAsked = true;
});
process.on('disconnect', () => process.exit());

for (;;) {
  const started = performance.now();
  const { status } = await call(url, { agent });
  if (status !== 200) throw new Error(`${url} answered ${status}`);
  waits.push(performance.now() - started);
  if (isAsked) {
    process.send?.({ longest: Math.max(...waits), median: median(waits) } satisfies Waits);
    waits = [];
    isAsked = false;
  }
  await delay(EVERY_MS);
}
