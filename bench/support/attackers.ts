/** Clients that repeat one request until they are ended, in a separate process, so that they are not measured. */
import { request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

const ATTACKERS = 2;
const PAUSE_MS = 5;

const [, , url = ''] = process.argv;
// The measuring process has ended.
process.on('disconnect', () => process.exit());
for (let number = 0; number < ATTACKERS; number++) void attack();

async function attack(): Promise<never> {
  for (;;) {
    await requestOnce();
    await delay(PAUSE_MS);
  }
}

/** The response is ignored. */
function requestOnce(): Promise<void> {
  return new Promise((resolve) => {
    const over = () => resolve();
    request(url, { method: 'POST' }, (response) => response.once('close', over).resume())
      .once('error', over)
      .end();
  });
}
