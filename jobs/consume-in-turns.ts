/**
 * Consumes a queue so that no owner is kept waiting by others. A queue gives its jobs in their order: those of one
 * owner may take all slots, for long. While all are taken, what was queued first is done, beyond the slots, for owners
 * for whom nothing is being done. The job of the queue finds nothing to do, when its time comes.
 */
import { toError } from '../src/errors.js';
import type { Jobs, QueueName } from '../src/queues/jobs.js';
import { type Consumer, consume, FailedJob, type QueueConfig } from '../src/queues/queues.js';
import type { Logger } from '../src/util/log.js';
import { PeriodicTask } from '../src/util/periodic-task.js';
import { ActiveJobs } from './active-jobs.js';

/** A queue, as a worker consumes it. */
export interface ConsumedQueue<Name extends QueueName> {
  readonly name: Name;
  /** Jobs at a time. */
  readonly slots: number;
  /** Does a job, or nothing when that is done or was claimed already. */
  readonly work: (job: Jobs[Name]) => Promise<unknown>;
}

/** A queue of several owners, and the rows that its jobs are of. */
export interface SharedQueue<Name extends QueueName> extends ConsumedQueue<Name> {
  /** Whose a job is, where no row says for whom something is being done; undefined: it is not there any more. */
  readonly ownerOf?: (job: Jobs[Name]) => Promise<string | undefined>;
  /** What others wait for, whoever it is of: it is done beyond all slots. */
  readonly urgent?: (sinceMs: number) => Promise<readonly Jobs[Name][]>;
  /**
   * The job that has waited longest, of each owner for whom nothing is being done, if it has waited for so long.
   * @param busy owners for whom this worker is doing something, with `ownerOf`
   */
  readonly waiting: (
    sinceMs: number,
    limit: number,
    busy: readonly string[],
  ) => Promise<readonly Jobs[Name][]>;
  /** The same of the parts of owners, where they have parts. */
  readonly waitingParts?: (sinceMs: number, limit: number) => Promise<readonly Jobs[Name][]>;
}

/** An owner waits so long, and until the next look. */
const PATIENCE_MS = 1_500;
export const LOOK_EVERY_MS = 1_000;
/** Jobs beyond the slots at a time, for owners, and as many for their parts. */
const BEYOND = 16;

/** @param lookEveryMs about `LOOK_EVERY_MS` */
export function consumeInTurns<Name extends QueueName>(
  config: QueueConfig,
  { name, slots, work, ownerOf, urgent, waiting, waitingParts }: SharedQueue<Name>,
  lookEveryMs: number,
  log: Logger,
): Consumer {
  let active = 0;
  const beyond = new Set<Promise<void>>();
  /** Owners, by their names. */
  const busy = new ActiveJobs();
  const doing = (job: Jobs[Name], owner: string | undefined) =>
    owner === undefined ? work(job) : busy.run(owner, () => work(job));
  /** A look finds all of a job or nothing: that a slot is taken, and for whom. */
  const counted = async (job: Jobs[Name]) => {
    const owner = await ownerOf?.(job);
    active++;
    try {
      return await doing(job, owner);
    } finally {
      active--;
    }
  };
  const begin = async (job: Jobs[Name]) => {
    const owner = await ownerOf?.(job);
    const done = doing(job, owner)
      .then(
        () => undefined,
        (thrown: unknown) => {
          if (!(thrown instanceof FailedJob)) log.error({ err: toError(thrown), queue: name }, 'job failed');
        },
      )
      .finally(() => beyond.delete(done));
    beyond.add(done);
  };
  const look = async () => {
    if (active < slots) return;
    for (const job of (await urgent?.(PATIENCE_MS)) ?? []) await begin(job);
    const free = BEYOND - beyond.size;
    // Parts leave as much to owners.
    const ofOwners = waitingParts ? free + BEYOND : free;
    const owners = ofOwners > 0 ? await waiting(PATIENCE_MS, ofOwners, busy.ids) : [];
    for (const job of owners) await begin(job);
    if (free <= 0) return;
    // What has just begun may not be seen as that yet.
    const started = new Set(owners.map((job) => JSON.stringify(job)));
    for (const job of (await waitingParts?.(PATIENCE_MS, free)) ?? [])
      if (!started.has(JSON.stringify(job))) await begin(job);
  };
  const looking = new PeriodicTask(lookEveryMs, look, (error) =>
    log.warn({ err: error, queue: name }, 'owners that wait for jobs could not be looked for'),
  );
  const consumer = consume(config, name, (job) => counted(job.data), slots, log);
  return {
    close: async () => {
      await Promise.all([looking.stop(), consumer.close()]);
      await Promise.all(beyond);
    },
  };
}
