/** Clients that send one request again and again until they are ended, in a process of their own: they must not be measured. */
import { request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

const ATTACKERS = 2;
const PAUSE_MS = 5;

const [, , url = ''] = process.argv;
// Whoever measures has ended.
process.on('disconnect', () => process.exit());
for (let number = 0; number < ATTACKERS; number++) void attack();

async function attack(): Promise<never> {
  for (;;) {
    await requestOnce();
    await delay(PAUSE_MS);
  }
}

/** What it gets for an answer does not matter, and is not kept. */
function requestOnce(): Promise<void> {
  return new Promise((resolve) => {
    const over = () => resolve();
    request(url, { method: 'POST' }, (response) => response.once('close', over).resume())
      .once('error', over)
      .end();
  });
}
