/** Writes the audit: every request that changes something, and every one that is refused. */
import { AppError, toError } from '../../errors.js';
import { addToAudit, auditedRow, differences } from '../../store/audit.js';
import { isUnavailable } from '../../store/database.js';
import { targetOf } from '../access/audited.js';
import { actorOf } from '../access/principal.js';
import { HiddenError } from '../access/references.js';
import type { ApiDependencies } from '../api-dependencies.js';
import type { ApiContext, Next } from '../route/context.js';
import { RefusalQuota } from './refusal-quota.js';

const REFUSED = new Set([401, 403, 429]);

export function audit({ store, log }: Pick<ApiDependencies, 'store' | 'log'>) {
  const quota = new RefusalQuota(log);

  return async (context: ApiContext, next: Next): Promise<void> => {
    let status: number;
    try {
      await next();
      const isRead = ['GET', 'HEAD'].includes(context.method) && !context.state.route?.isReturn;
      if (isRead || context.status >= 400) return;
      status = context.status;
    } catch (thrown) {
      const isRefused =
        thrown instanceof AppError && (REFUSED.has(thrown.status) || thrown instanceof HiddenError);
      if (isRefused && quota.keeps(context, thrown.code)) await write(context, 'refused', thrown.status);
      else if (!isRefused) await writeIfChanged(context, toError(thrown));
      throw thrown;
    }
    if (!context.state.isTrial) await write(context, 'changed', status);
  };

  /** A change may have been made before its request failed: when it waited for too long, for example. */
  async function writeIfChanged(context: ApiContext, error: Error): Promise<void> {
    if (!context.state.audited || isUnavailable(error)) return;
    const status = error instanceof AppError ? error.status : 500;
    if (status === 409 || status === 422 || status >= 500) await write(context, 'changed', status, true);
  }

  async function write(
    context: ApiContext,
    outcome: 'changed' | 'refused',
    status: number,
    unlessUnchanged = false,
  ): Promise<void> {
    const { route, audited, requestId } = context.state;
    const { address } = context.state.client;
    // What is refused before it is looked at names its object, too.
    const target = audited ?? (route && targetOf(route.path, context.params));
    try {
      const id =
        target?.id ??
        (outcome === 'changed' ? (context.state.answeredId ?? createdId(context.body)) : undefined);
      const after =
        outcome === 'changed' && id && audited ? await auditedRow(store, audited.kind, id) : undefined;
      const compared =
        outcome === 'changed' ? differences(audited?.before, after) : { before: null, after: null };
      const isUnchanged = ![compared.before, compared.after, audited?.details].some(hasMembers);
      if (unlessUnchanged && isUnchanged) return;
      const details = { ...target?.named, ...audited?.details };
      await addToAudit(store, {
        actor: actorOf(context),
        address,
        request_id: requestId,
        method: context.method,
        action: route?.path ?? context.path.slice(0, 1_000),
        outcome,
        status,
        object_kind: target?.kind ?? null,
        object_id: id ?? null,
        before: compared.before,
        after: hasMembers(details) ? { ...compared.after, ...details } : compared.after,
      });
    } catch (thrown) {
      context.state.log.error({ err: toError(thrown), outcome, status }, 'the audit could not be written');
    }
  }
}

function hasMembers(row: Readonly<Record<string, unknown>> | null | undefined): boolean {
  return Object.keys(row ?? {}).length > 0;
}

function createdId(body: unknown): string | undefined {
  const data = (body as { data?: { id?: unknown } } | null)?.data;
  return typeof data?.id === 'string' ? data.id : undefined;
}
