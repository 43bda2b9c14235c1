/** Nothing is changed that the audit could not have: it is asked first whether it can be written. */
import { AppError, toError } from '../../errors.js';
import { canWriteAudit } from '../../store/audit.js';
import { isUnavailable } from '../../store/database.js';
import { CoalescingTask } from '../../util/coalescing-task.js';
import type { ApiDependencies } from '../api-dependencies.js';
import type { ApiContext, Next } from '../route/context.js';

/** @returns a middleware that refuses changes with `audit_unavailable` */
export function requireAudit({ store }: Pick<ApiDependencies, 'store'>) {
  // Requests that wait share an answer of the database.
  const asking = new CoalescingTask(() => canWriteAudit(store));
  return async (context: ApiContext, next: Next): Promise<unknown> => {
    const isRead = ['GET', 'HEAD'].includes(context.method) && !context.state.route?.isReturn;
    if (isRead) return next();
    const can = await asking.run().catch((thrown: unknown) => {
      if (isUnavailable(thrown)) throw thrown;
      throw refusal(toError(thrown));
    });
    if (!can) throw refusal(new Error('The user of the database may not add rows to the table audit'));
    return next();
  };
}

function refusal(cause: Error): AppError {
  return new AppError(
    'audit_unavailable',
    'The audit cannot be written, so nothing was changed; the log has the reason, and docs/SECURITY.md the rights that ' +
      'it needs',
    {},
    { cause },
  );
}
