/** Converts errors to responses. Clients see only messages of AppErrors; everything else goes to the log. */
import { AppError, toError } from '../../errors.js';
import { isUnavailable } from '../../store/database.js';
import { isDiskFull } from '../../util/disk-full.js';
import { wrapFailure } from '../response/envelope.js';
import type { ApiContext, Next } from '../route/context.js';

export async function errors(context: ApiContext, next: Next): Promise<void> {
  try {
    await next();
  } catch (thrown) {
    const error = appErrorFrom(thrown, context);
    context.status = error.status;
    const { retry_after_seconds: seconds, build_id: build } = (error.extras.details ?? {}) as Details;
    if (seconds !== undefined) context.set('Retry-After', String(seconds));
    // It goes on: there its outcome will be.
    if (error.code === 'wait_timeout' && build !== undefined) context.set('Location', `/api/builds/${build}`);
    context.body = wrapFailure(context.state.route?.envelope ?? 'ok', error);
  }
}

/** Details that headers tell, too. */
interface Details {
  readonly retry_after_seconds?: number;
  readonly build_id?: string;
}

function appErrorFrom(thrown: unknown, context: ApiContext): AppError {
  if (thrown instanceof AppError) {
    if (thrown.status >= 500 && thrown.cause !== undefined) {
      context.state.log.warn({ err: toError(thrown.cause), code: thrown.code }, thrown.message);
    }
    return thrown;
  }
  const error = toError(thrown);
  if (isUnavailable(error)) {
    context.state.log.warn({ err: error }, 'database unavailable');
    return new AppError('database_unavailable', 'The database cannot be reached at the moment; try again');
  }
  context.state.log.error({ err: error }, 'request failed');
  if (isDiskFull(error)) {
    return new AppError(
      'no_disk_space',
      'There is no room left on the disk of the service (DATA_DIR); free some, then try again.',
    );
  }
  return new AppError(
    'internal_error',
    `The request failed because of an internal error; the log has the details under the request id ${context.state.requestId}`,
  );
}
