/** Waits until handlers can be compiled. */
import { setTimeout as delay } from 'node:timers/promises';
import { describePreparation, type Preparation, SDK, TOOLCHAIN } from '../model/preparation.js';
import type { ApiClient } from './sample.js';

const POLL_MS = 500;

/** @param show called with a line of progress from time to time */
export async function awaitSdk(api: ApiClient, show: (line: string) => void): Promise<void> {
  for (;;) {
    const { sandbox, preparing } = (await api.get('/api/health')) as {
      sandbox: { worker: string | null };
      preparing: Preparation[];
    };
    const sdk = preparing.find(({ what }) => what === SDK || what === TOOLCHAIN);
    // A worker that ended is restarted, and continues.
    if (!sdk && sandbox.worker !== null) return;
    if (sdk) show(describePreparation(sdk));
    await delay(POLL_MS);
  }
}
