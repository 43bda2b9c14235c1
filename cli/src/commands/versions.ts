/** `edge versions`, `rollback` and `promote`. */
import { UsageError } from '../errors.js';
import { endpointId } from '../names.js';
import { type CommonOptions, type Session, withInterruptHint } from '../session.js';
import { safeText, timeOf } from '../text.js';
import { rollbackApply } from './apply.js';
import { actorOf } from './variables.js';

interface VersionOptions extends CommonOptions {
  readonly version?: number;
  readonly message?: string;
}

const CONTINUES = 'It continues at the gateway; `edge versions` shows its outcome.';

export async function versions(
  session: Session,
  { limit, diff }: CommonOptions & { readonly limit: number; readonly diff?: string },
  name?: string,
): Promise<void> {
  const id = await endpointId(session, name);
  if (diff !== undefined) return differences(session, id, diff);
  const list = await session.api.get('GET /api/endpoints/{id}/versions', {
    params: { id },
    query: { limit },
  });
  session.out.result(list, () => {
    if (list.length === 0) session.out.note('There are none yet; `edge deploy` makes the first.');
    else
      session.out.table(
        ['version', 'serves', 'when', 'by', 'message'],
        list.map((one) => [
          String(one.version),
          one.deployed_percent > 0 ? `${one.deployed_percent} %` : '',
          timeOf(one.created_at),
          actorOf(one.actor),
          one.message ?? '',
        ]),
      );
  });
}

/** What differs between two versions: code, files, edition, dependencies and crates. */
async function differences(session: Session, id: string, numbers: string): Promise<void> {
  const [, version, to] = /^([1-9]\d{0,8})\.\.([1-9]\d{0,8})$/.exec(numbers) ?? [];
  if (version === undefined || to === undefined)
    throw new UsageError(`--diff takes two versions such as 3..5, not "${numbers}"`);
  const found = await session.api.get('GET /api/endpoints/{id}/versions/{version}/diff', {
    ...{ params: { id, version }, query: { to } },
  });
  session.out.result(found, () => session.out.raw(safeText(found.diff)));
}

interface RollbackOptions extends VersionOptions {
  readonly apply?: string;
  readonly yes?: boolean;
  readonly wait: boolean;
}

export async function rollback(
  session: Session,
  { version, message, apply, yes, wait }: RollbackOptions,
  name?: string,
): Promise<void> {
  if (apply !== undefined) {
    if (name !== undefined || version !== undefined || message !== undefined)
      throw new UsageError('--apply rolls back a whole apply: give no endpoint, version or message with it');
    return rollbackApply(session, apply, { ...(yes !== undefined && { yes }), wait });
  }
  if (!wait) throw new UsageError('--no-wait belongs to --apply: only applies wait for each other');
  const id = await endpointId(session, name);
  session.out.progress('Rolling back');
  const body = { ...(version !== undefined && { version }), ...(message !== undefined && { message }) };
  const call = session.api.call('POST /api/endpoints/{id}/rollback', { params: { id }, body });
  const { data, warnings } = await withInterruptHint(session, CONTINUES, call);
  session.out.warnings(warnings);
  session.out.result(data, () => session.out.line(`Version ${data.version} serves`));
}

export async function promote(
  session: Session,
  { version, message }: VersionOptions,
  name?: string,
): Promise<void> {
  const id = await endpointId(session, name);
  const promoted = version ?? (await newerOfTwo(session, id));
  session.out.progress(`Giving version ${promoted} all requests`);
  const body = { targets: [{ version: promoted, percent: 100 }], ...(message !== undefined && { message }) };
  const call = session.api.call('PUT /api/endpoints/{id}/deployment', { params: { id }, body });
  const { data, warnings } = await withInterruptHint(session, CONTINUES, call);
  session.out.warnings(warnings);
  session.out.result(data, () => session.out.line(`Version ${promoted} serves all requests`));
}

async function newerOfTwo({ api }: Session, id: string): Promise<number> {
  const { deployment } = await api.get('GET /api/endpoints/{id}', { params: { id } });
  const targets = deployment?.targets ?? [];
  if (targets.length < 2)
    throw new UsageError(
      'No two versions share the requests, so there is none to promote',
      'Name one with --version; `edge deploy --percent 10` lets a new one share.',
    );
  return Math.max(...targets.map((target) => target.version));
}
