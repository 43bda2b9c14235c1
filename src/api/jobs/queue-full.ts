/** The room that an owner has for queued requests and schedules. */
import type { Config } from '../../config.js';
import { AppError } from '../../errors.js';
import { titleOfOwner } from '../../model/owner.js';
import { queueLimit } from '../../model/queue-room.js';
import type { OwnerFull } from '../../store/jobs.js';

/** The error when the owner of an endpoint has no room for a request. */
export function queueFull(
  { owner, bytes }: Omit<OwnerFull, 'full'>,
  config: Pick<Config, 'JOBS_QUEUED_MB'>,
): AppError {
  const limit = `${config.JOBS_QUEUED_MB} MiB`;
  return new AppError(
    'queue_full',
    bytes > queueLimit(config)
      ? `The request takes ${bytes} bytes; all queued requests and schedules of ${titleOfOwner(owner)} may take ` +
          `${limit} (JOBS_QUEUED_MB): send less.`
      : `The queued requests and schedules of ${titleOfOwner(owner)} would take more than ${limit} with this one ` +
          '(JOBS_QUEUED_MB); try again when requests have ended, delete schedules, or send less.',
  );
}
