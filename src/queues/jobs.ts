/** The queues and their jobs. Jobs contain ids and names only; their input and outcome are in tables. */
import type { BuildAttempt } from '../store/builds.js';
import type { HandlerAttempt } from '../store/import-handlers.js';
import type { QueuedJob } from '../store/jobs.js';

/** A build. */
export interface CompileJob {
  readonly buildId: string;
  readonly attempt: number;
  /** The name of the endpoint that asked for it, for the dashboard. */
  readonly endpoint?: string;
  /** Id of the API call that requested it. */
  readonly requestId: string;
}

/** An import: the parent of the jobs of its handlers. */
export interface ImportJob {
  readonly importId: string;
  readonly requestId: string;
}

/** A handler of an imported bundle: it is compiled and, if requested, started. */
export interface HandlerJob extends HandlerAttempt {
  readonly requestId: string;
}

/** A request that is sent to a handler. */
export type InvokeJob = QueuedJob;

/** One of the times at which a run of a schedule is due. */
export interface ScheduleJob {
  readonly scheduleId: string;
}

/** One attempt to send a webhook. */
export interface AlertJob {
  readonly deliveryId: string;
  /** Attempts before this one. */
  readonly attempts: number;
}

/** One try of an apply. */
export interface ApplyJob {
  readonly applyId: string;
  readonly attempt: number;
  readonly requestId: string;
}

/** One try to order a certificate by ACME. */
export interface AcmeJob {
  readonly domainId: string;
  /** The ticket of this try: a job with the ticket of an earlier one does nothing. */
  readonly ticket: string;
}

/** What the jobs of each queue contain. */
export interface Jobs {
  readonly compile: CompileJob;
  readonly import: ImportJob;
  readonly handler: HandlerJob;
  readonly invoke: InvokeJob;
  readonly schedule: ScheduleJob;
  readonly alert: AlertJob;
  readonly apply: ApplyJob;
  readonly acme: AcmeJob;
}

export type QueueName = keyof Jobs;

interface QueueDefinition<Job> {
  /** What is put on the queue of a job, or of a row that has more. */
  readonly members: { readonly [Member in keyof Required<Job>]: true };
  /** The same for what is to be done once. BullMQ rejects ids that contain ":" or are numbers. */
  readonly jobId: (job: Job) => string;
  /** Whether operators see finished jobs for a while. Otherwise rows say what is due, and may have it queued again. */
  readonly keepsFinished: boolean;
}

/** All queues, in the order of the dashboard. */
export const QUEUES: { readonly [Name in QueueName]: QueueDefinition<Jobs[Name]> } = {
  compile: {
    members: { buildId: true, attempt: true, endpoint: true, requestId: true },
    jobId: ({ buildId: id, attempt }) => buildJobId({ id, attempt }),
    keepsFinished: true,
  },
  import: {
    members: { importId: true, requestId: true },
    jobId: ({ importId }) => importId,
    keepsFinished: true,
  },
  handler: {
    members: { importId: true, endpointId: true, attempt: true, endpoint: true, requestId: true },
    jobId: handlerJobId,
    keepsFinished: true,
  },
  invoke: {
    members: { id: true, generation: true, endpoint: true },
    jobId: invokeJobId,
    keepsFinished: true,
  },
  schedule: {
    members: { scheduleId: true },
    jobId: ({ scheduleId }) => scheduleId,
    keepsFinished: true,
  },
  alert: {
    members: { deliveryId: true, attempts: true },
    jobId: ({ deliveryId, attempts }) => `${deliveryId}-${attempts}`,
    keepsFinished: false,
  },
  apply: {
    members: { applyId: true, attempt: true, requestId: true },
    jobId: applyJobId,
    keepsFinished: true,
  },
  acme: {
    members: { domainId: true, ticket: true },
    jobId: ({ ticket }) => ticket,
    keepsFinished: false,
  },
};

export const QUEUE_NAMES = Object.keys(QUEUES) as readonly QueueName[];

/** The job of a build. @param endpoint the name of the one that asked for it */
export function compileJob(
  { id: buildId, attempt }: BuildAttempt,
  requestId: string,
  endpoint?: string,
): CompileJob {
  return { buildId, attempt, requestId, ...(endpoint !== undefined && { endpoint }) };
}

export function buildJobId({ id, attempt }: BuildAttempt): string {
  return `${id}-${attempt}`;
}

export function handlerJobId({ importId, endpointId, attempt }: HandlerAttempt): string {
  return `${importId}-${endpointId}-${attempt}`;
}

export function invokeJobId({ id, generation }: QueuedJob): string {
  return `${id}-${generation}`;
}

export function applyJobId({ applyId, attempt }: Pick<ApplyJob, 'applyId' | 'attempt'>): string {
  return `${applyId}-${attempt}`;
}
