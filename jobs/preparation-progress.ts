/** Reports to the other processes, and the log, what this worker is still preparing. */
import { CRATES, cratesLine } from '../src/model/crates-line.js';
import {
  type BuildingCrates,
  describePreparation,
  type Preparation,
  TOOLCHAIN,
} from '../src/model/preparation.js';
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

/** What a worker prepares. */
export interface WorkerProgress {
  /** What all can know. */
  readonly preparing: readonly Preparation[];
  /** The sets of crates among it, for those who may see the builds that wait for them. */
  readonly crates: readonly BuildingCrates[];
}

interface ReportOptions {
  readonly read: () => WorkerProgress;
  /** Publishes it to the other processes. */
  readonly save: (progress: WorkerProgress) => Promise<void>;
  /** Tells that the crates of these builds have got on. */
  readonly announce: (builds: string[]) => Promise<void>;
  readonly log: Logger;
}

/** Checks every second until stopped. */
export function reportPreparation({ read, save, announce, log }: ReportOptions): PeriodicTask {
  let wasPreparing = true;
  let loggedAt = performance.now();
  /** What was told of each build. */
  let told = new Map<string, string>();
  return new PeriodicTask(
    CHECK_EVERY_MS,
    async () => {
      const current = read();
      const { preparing, crates } = current;
      if (preparing.length > 0 || wasPreparing) await save(current);
      wasPreparing = preparing.length > 0;
      const news = newsOf(crates);
      const changed = [...news].filter(([id, news]) => told.get(id) !== news).map(([id]) => id);
      if (changed.length > 0) await announce(changed);
      told = news;
      if (!wasPreparing || performance.now() - loggedAt < LOG_EVERY_MS) return;
      loggedAt = performance.now();
      const lines = [
        ...preparing.filter(({ what }) => what !== CRATES).map(describePreparation),
        ...crates.map(cratesLine),
      ];
      log.info(`preparing ${lines.join('; ')}`);
    },
    (error) => log.warn({ err: error }, 'the progress of the preparation could not be saved'),
  );
}

/** By build, what is worth telling: seconds go on by themselves. */
function newsOf(crates: readonly BuildingCrates[]): Map<string, string> {
  return new Map(
    crates.flatMap((set) =>
      set.builds.map(({ id }) => [id, `${set.crates} ${set.of} ${set.crate}`] as const),
    ),
  );
}
