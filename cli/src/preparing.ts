/** What workers prepare before they can compile anything, such as the SDK after the first start of a gateway. */
import { setTimeout as delay } from 'node:timers/promises';
import type { ApiClient } from './client.js';
import { CliError } from './errors.js';
import { CRATES, cratesLine } from './generated/crates-line.js';
import type { Build, Health } from './generated/routes.js';
import type { Session } from './session.js';
import { safeLine } from './text.js';

type Preparation = Health['preparing'][number];

/** Most work has ended before. */
const FIRST_LOOK_MS = 2_000;
const LOOK_EVERY_MS = 5_000;
const MOST_RUNNING = 200;

/** What is known of the crates that work waits for. */
export interface WaitedCrates {
  /** That of the request which has asked for the build; undefined: there is none, or several. */
  readonly requestId?: string;
  /** Whether the work itself tells of them. */
  readonly areTold?: boolean;
}

/** Waits for work of the gateway, and says meanwhile what that has to wait for. */
export async function withPreparationProgress<T>(
  session: Session,
  work: Promise<T>,
  crates: WaitedCrates = {},
): Promise<T> {
  const done = new AbortController();
  void reportPreparations(session, AbortSignal.any([session.signal, done.signal]), crates);
  try {
    return await work;
  } finally {
    done.abort();
  }
}

/** Never rejects: the work itself fails with what is wrong. */
async function reportPreparations(
  session: Session,
  ended: AbortSignal,
  { requestId, areTold = false }: WaitedCrates,
): Promise<void> {
  for (let pause = FIRST_LOOK_MS; !ended.aborted; pause = LOOK_EVERY_MS)
    try {
      await delay(pause, undefined, { signal: ended });
      const api = session.apiAt(session.access, ended);
      const crates = requestId === undefined ? undefined : await cratesOf(api, requestId);
      const { preparing } = await api.get('GET /api/health');
      const text = preparing
        .filter(({ what }) => what !== CRATES || !areTold)
        .map(preparationOf)
        .join(', ');
      if (ended.aborted) return;
      if (crates !== undefined) session.out.progress(crates);
      else if (text !== '') session.out.progress(`A worker prepares the ${text}`);
    } catch {
      // It has ended, or the gateway does not answer now.
    }
}

/** The crates that the build of a request waits for; undefined: none, or they may not be seen. */
async function cratesOf(api: ApiClient, requestId: string): Promise<string | undefined> {
  const query = { state: 'running', limit: MOST_RUNNING } as const;
  const builds = await api.get('GET /api/builds', { query }).catch((thrown: unknown) => {
    if (thrown instanceof CliError && thrown.facts.status === 403) return [];
    throw thrown;
  });
  const build = builds.find(({ request_id }) => request_id === requestId);
  return build?.crates ? cratesLine(build.crates) : undefined;
}

function preparationOf({ what, crates, of, seconds, problem }: Preparation): string {
  const built = `${what}, once:${of === null ? '' : ` ${crates} of ${of} crates,`} ${seconds} s`;
  return problem === null ? built : `${built} (${problem})`;
}

/** A set of crates that is being built, as events tell of it. */
export type BuildingCrates = NonNullable<Build['crates']> & {
  readonly builds: readonly { readonly endpoint: string | null }[];
};

/** `crates 7 of 31: reqwest (22 s), for hello and 3 more` */
export function buildingCrates({ builds, ...crates }: BuildingCrates): string {
  const [first] = builds.flatMap(({ endpoint }) => endpoint ?? []);
  const more = builds.length > 1 ? ` and ${builds.length - 1} more` : '';
  return safeLine(`${cratesLine(crates)}${first === undefined ? '' : `, for ${first}${more}`}`);
}

/** Whether a request has waited for too long, because workers still prepare: the build that it asked for goes on. */
export function isStillPreparing(thrown: unknown): boolean {
  if (!(thrown instanceof CliError) || thrown.facts.code !== 'wait_timeout') return false;
  const { preparing } = (thrown.facts.details ?? {}) as { readonly preparing?: readonly unknown[] };
  return preparing !== undefined && preparing.length > 0;
}
