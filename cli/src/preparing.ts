/** What workers prepare before they can compile anything, such as the SDK after the first start of a gateway. */
import { setTimeout as delay } from 'node:timers/promises';
import { CliError } from './errors.js';
import type { Health } from './generated/routes.js';
import type { Session } from './session.js';

type Preparation = Health['preparing'][number];

/** Most work has ended before. */
const FIRST_LOOK_MS = 2_000;
const LOOK_EVERY_MS = 5_000;

/** Waits for work of the gateway, and says meanwhile what that has to wait for. */
export async function withPreparationProgress<T>(session: Session, work: Promise<T>): Promise<T> {
  const done = new AbortController();
  void reportPreparations(session, AbortSignal.any([session.signal, done.signal]));
  try {
    return await work;
  } finally {
    done.abort();
  }
}

/** Never rejects: the work itself fails with what is wrong. */
async function reportPreparations(session: Session, ended: AbortSignal): Promise<void> {
  for (let pause = FIRST_LOOK_MS; !ended.aborted; pause = LOOK_EVERY_MS)
    try {
      await delay(pause, undefined, { signal: ended });
      const { preparing } = await session.apiAt(session.access, ended).get('GET /api/health');
      const text = preparing.map(preparationOf).join(', ');
      if (text !== '' && !ended.aborted) session.out.progress(`A worker prepares the ${text}`);
    } catch {
      // It has ended, or the gateway does not answer now.
    }
}

function preparationOf({ what, crates, of, seconds, problem }: Preparation): string {
  const built = `${what}, once:${of === null ? '' : ` ${crates} of ${of} crates,`} ${seconds} s`;
  return problem === null ? built : `${built} (${problem})`;
}

/** Whether a request has waited for too long, because workers still prepare: the build that it asked for goes on. */
export function isStillPreparing(thrown: unknown): boolean {
  if (!(thrown instanceof CliError) || thrown.facts.code !== 'wait_timeout') return false;
  const { preparing } = (thrown.facts.details ?? {}) as { readonly preparing?: readonly unknown[] };
  return preparing !== undefined && preparing.length > 0;
}
