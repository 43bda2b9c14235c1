/** The queues and their jobs. Jobs contain ids and names only; their input and outcome are in tables. */
import type { BuildAttempt } from '../store/builds.js';
import type { HandlerAttempt } from '../store/import-handlers.js';
import type { QueuedJob } from '../store/jobs.js';

/** The queue of builds. */
export const COMPILE_QUEUE = 'compile';
/** The queue of handlers of imported bundles: each is compiled and, if requested, started. */
export const HANDLER_QUEUE = 'handler';
/** The queue of imports: each is the parent of the jobs of its handlers. */
export const IMPORT_QUEUE = 'import';
/** The queue of requests that are sent to handlers. */
export const INVOKE_QUEUE = 'invoke';
/** The queue of schedules: a job for each time that a run of one is due. */
export const SCHEDULE_QUEUE = 'schedule';
/** The queue of webhooks of alerts. */
export const ALERT_QUEUE = 'alert';

/** The queue of applies. */
export const APPLY_QUEUE = 'apply';

/** The queue of certificates that are ordered by ACME. */
export const ACME_QUEUE = 'acme';

/** A job of the ACME queue: one try to order a certificate. */
export interface AcmeJob {
  readonly domainId: string;
  /** Of this try. */
  readonly ticket: string;
}

/** A job of the apply queue: one try. */
export interface ApplyJob {
  readonly applyId: string;
  readonly attempt: number;
  readonly requestId: string;
}

export function applyJobId({ applyId, attempt }: Pick<ApplyJob, 'applyId' | 'attempt'>): string {
  return `${applyId}-${attempt}`;
}

/** A job of the compile queue. */
export interface CompileJob {
  readonly buildId: string;
  readonly attempt: number;
  /** The name of the endpoint that asked for it, for the dashboard. */
  readonly endpoint?: string;
  /** Of the API call that requested it. */
  readonly requestId: string;
}

/** A job of the handler queue. */
export interface HandlerJob extends HandlerAttempt {
  readonly requestId: string;
}

/** A job of the import queue. */
export interface ImportJob {
  readonly importId: string;
  readonly requestId: string;
}

/** A job of the invoke queue. */
export type InvokeJob = QueuedJob;

/** A job of the schedule queue. */
export interface ScheduleJob {
  readonly scheduleId: string;
}

/** A job of the alert queue: one attempt to send a webhook. */
export interface AlertJob {
  readonly deliveryId: string;
  /** Attempts before this one. */
  readonly attempts: number;
}

export function alertJobId({ deliveryId, attempts }: AlertJob): string {
  return `${deliveryId}-${attempts}`;
}

export function invokeJobId({ id, generation }: QueuedJob): string {
  return `${id}-${generation}`;
}

// BullMQ rejects job ids that contain ":" or are numbers.
export function buildJobId({ id, attempt }: BuildAttempt): string {
  return `${id}-${attempt}`;
}

export function handlerJobId({ importId, endpointId, attempt }: HandlerAttempt): string {
  return `${importId}-${endpointId}-${attempt}`;
}
