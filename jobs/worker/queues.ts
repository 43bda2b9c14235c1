/** The queues from which a worker takes jobs. Each is described in the file of its job. */
import type { QueueName } from '../../src/queues/jobs.js';
import { type Consumer, consume } from '../../src/queues/queues.js';
import { acmeQueue } from '../acme.js';
import { alertQueue } from '../alerts.js';
import { applyQueue } from '../apply.js';
import { compileQueue } from '../compile.js';
import { type ConsumedQueue, consumeInTurns, LOOK_EVERY_MS, type SharedQueue } from '../consume-in-turns.js';
import { invokeQueue } from '../deliver.js';
import { handlerQueue } from '../handler.js';
import { importQueue } from '../import.js';
import { scheduleQueue } from '../schedule.js';
import type { WorkerContext } from './context.js';
import { intervalMs } from './periodic-work.js';

/** Begins to take jobs. */
type StartConsumer = (worker: WorkerContext) => Consumer;

/** A worker takes these jobs at once: they need no compiler. */
const QUEUES_WITHOUT_COMPILER: readonly StartConsumer[] = [
  inTurns(invokeQueue),
  inTurns(alertQueue),
  inTurns(scheduleQueue),
];
/** Until the SDK is built, these jobs stay in their queues, where other workers can take them. */
const QUEUES_WITH_COMPILER: readonly StartConsumer[] = [
  inTurns(compileQueue),
  inTurns(handlerQueue),
  inTurns(applyQueue),
  inOrder(importQueue),
];

export function consumeWithoutCompiler(worker: WorkerContext): Consumer[] {
  const { acme } = worker;
  return [
    ...QUEUES_WITHOUT_COMPILER.map((start) => start(worker)),
    ...(acme ? [inOrder(() => acmeQueue(acme))(worker)] : []),
  ];
}

export function consumeWithCompiler(worker: WorkerContext): Consumer[] {
  return QUEUES_WITH_COMPILER.map((start) => start(worker));
}

function inTurns<Name extends QueueName>(
  queueOf: (worker: WorkerContext) => SharedQueue<Name>,
): StartConsumer {
  return (worker) => {
    const { config, log } = worker;
    return consumeInTurns(config, queueOf(worker), intervalMs(config, LOOK_EVERY_MS), log);
  };
}

function inOrder<Name extends QueueName>(
  queueOf: (worker: WorkerContext) => ConsumedQueue<Name>,
): StartConsumer {
  return (worker) => {
    const { name, slots, work } = queueOf(worker);
    return consume(worker.config, name, (job) => work(job.data), slots, worker.log);
  };
}
