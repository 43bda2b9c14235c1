/**
 * Which part of the limits of rates this gateway lets through, where gateways count by themselves: by those that are
 * alive. While PostgreSQL is away, the number that was read last counts.
 */

import type { Changes } from '../../reconcile/changes.js';
import { awaitLiveNodes } from '../../reconcile/nodes.js';
import type { Store } from '../../store/database.js';
import { CoalescingTask } from '../../util/coalescing-task.js';
import type { Logger } from '../../util/log.js';
import { PeriodicTask } from '../../util/periodic-task.js';
import type { Share } from '../front/messages.js';

/** Those that are lost are not announced. */
const LOOK_EVERY_MS = 2_000;

export interface RateShareOptions {
  readonly store: Store;
  readonly changes: Changes;
  /** Id of this gateway. */
  readonly nodeId: string;
  /** Called with the first share, and when it changes. */
  readonly changed: (share: Share) => void;
  readonly log: Logger;
}

export class RateShare {
  readonly #options: RateShareOptions;
  // That PostgreSQL is away is told by the heartbeat.
  readonly #reading = new CoalescingTask(() => this.#read().catch(() => undefined));
  readonly #looking: PeriodicTask;
  #share: Share | undefined;

  constructor(options: RateShareOptions) {
    this.#options = options;
    const look = () => void this.look();
    options.changes.onChange('node', look);
    options.changes.onConnected(look);
    this.#looking = new PeriodicTask(
      LOOK_EVERY_MS,
      () => this.look(),
      () => undefined,
    );
  }

  /** Reads which gateways are alive; resolves when that has been done, or cannot be. */
  async look(): Promise<void> {
    await this.#reading.run();
  }

  async stop(): Promise<void> {
    await this.#looking.stop();
    await this.#reading.idle();
  }

  async #read(): Promise<void> {
    const { store, nodeId, changed, log } = this.#options;
    const ids = (await awaitLiveNodes(store, 'gateway')).map(({ id }) => id).sort();
    const place = ids.indexOf(nodeId);
    // It has expired, and will be registered again.
    if (place < 0) return;
    const before = this.#share;
    if (before?.gateways === ids.length && before.place === place) return;
    this.#share = { type: 'share', gateways: ids.length, place };
    changed(this.#share);
    if (before?.gateways !== ids.length && (before || ids.length > 1))
      log.info({ gateways: ids.length }, 'limits of rates are shared by so many gateways');
  }
}
