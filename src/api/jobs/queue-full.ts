/** The room that a domain has for queued requests and schedules. */
import type { Config } from '../../config.js';
import { AppError } from '../../errors.js';

type QueueSettings = Pick<Config, 'JOBS_QUEUED_MB'>;

/** Bytes of the queued requests and schedules of one domain. */
export function maxQueuedBytes({ JOBS_QUEUED_MB: megabytes }: QueueSettings): number {
  return megabytes * 1024 * 1024;
}

/** The error when the domain of an endpoint has no room for a request. */
export function queueFull(
  { domain }: { readonly domain: string },
  { JOBS_QUEUED_MB }: QueueSettings,
): AppError {
  return new AppError(
    'queue_full',
    `The queued requests and schedules of the domain "${domain}" take ${JOBS_QUEUED_MB} MiB with this one ` +
      '(JOBS_QUEUED_MB); try again when requests have ended, delete schedules, or send less.',
  );
}
