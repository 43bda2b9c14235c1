/** Reports to the other processes, and the log, what this worker is still preparing. */
import { describePreparation, type Preparation, TOOLCHAIN } from '../src/model/preparation.js';
import type { Logger } from '../src/util/log.js';
import { PeriodicTask } from '../src/util/periodic-task.js';

const CHECK_EVERY_MS = 1_000;
const LOG_EVERY_MS = 5_000;

/** Reads how far the copy of the toolchain is that begins now. */
export function toolchainCopy(): () => Preparation[] {
  const startedAt = performance.now();
  return () => {
    const seconds = Math.floor((performance.now() - startedAt) / 1000);
    return [{ what: TOOLCHAIN, crates: 0, of: null, seconds, problem: null }];
  };
}

/**
 * Checks every second until stopped.
 * @param save publishes it to the other processes
 */
export function reportPreparation(
  preparing: () => Preparation[],
  save: (preparing: Preparation[]) => Promise<void>,
  log: Logger,
): PeriodicTask {
  let wasPreparing = true;
  let loggedAt = performance.now();
  return new PeriodicTask(
    CHECK_EVERY_MS,
    async () => {
      const current = preparing();
      if (current.length > 0 || wasPreparing) await save(current);
      wasPreparing = current.length > 0;
      if (!wasPreparing || performance.now() - loggedAt < LOG_EVERY_MS) return;
      loggedAt = performance.now();
      log.info(`preparing ${current.map(describePreparation).join('; ')}`);
    },
    (error) => log.warn({ err: error }, 'the progress of the preparation could not be saved'),
  );
}
