/** The requests of applies and of their rollback. */
import { type Answer, call, send, target } from '../api/client.js';
import { toApiError } from '../api/query.js';
import { upload } from '../api/upload.js';
import type { Apply, Plan } from '../generated/routes.js';

/** A ZIP of a folder, or the text of its only file. */
export type Source = { readonly bundle: File } | { readonly text: string };

export interface Options {
  /** Name of the overlay; empty: none. */
  readonly env: string;
  /** Objects of the stack that the files do not have are deleted. */
  readonly prune: boolean;
  /** Objects that belong to no stack become those of this one. */
  readonly adopt: boolean;
}

export interface ApplyRequest {
  readonly source: Source;
  readonly options: Options;
}

const FILE = 'edge.yaml';
/** The page of the apply tells how it goes on. */
const NOT_WAITING = { prefer: 'respond-async' };

/** What an apply would do. @throws ApiError */
export async function planApply(request: ApplyRequest, signal: AbortSignal): Promise<Answer<Plan>> {
  return (await apply(request, { dry_run: true }, { signal })) as Answer<Plan>;
}

/** Carries out the plan with this hash. @returns the id of the apply. @throws ApiError */
export async function startApply(
  request: ApplyRequest,
  planHash: string,
  onProgress: (part: number) => void,
): Promise<string> {
  const { data } = await apply(request, { plan_hash: planHash }, { headers: NOT_WAITING, onProgress });
  return (data as Apply).id;
}

type UploadOptions = Pick<Parameters<typeof upload>[0], 'signal' | 'headers' | 'onProgress'>;

function apply(
  { source, options }: ApplyRequest,
  step: object,
  more: UploadOptions,
): Promise<Answer<unknown>> {
  const { env, prune, adopt } = options;
  const query = {
    ...step,
    env: env.trim(),
    ...(prune && { prune }),
    ...(adopt && { adopt }),
  };
  const body =
    'bundle' in source
      ? new Blob([source.bundle], { type: 'application/zip' })
      : new Blob([JSON.stringify({ files: { [FILE]: source.text } })], { type: 'application/json' });
  return upload({ route: 'POST /api/apply', query, body, ...more });
}

/** What the rollback of an apply would do. @throws ApiError */
export async function planRollback(id: string, signal: AbortSignal): Promise<Answer<Plan>> {
  const input = { params: { id }, query: { dry_run: 'true' as const } };
  return (await call('POST /api/applies/{id}/rollback', input, signal)) as Answer<Plan>;
}

/** Rolls an apply back, as its plan says. @returns the id of the apply that does. @throws ApiError */
export async function startRollback(id: string, planHash: string): Promise<string> {
  const input = { params: { id }, query: { plan_hash: planHash } };
  const { method, path } = target('POST /api/applies/{id}/rollback', input);
  const { data } = await send(method, path, undefined, { headers: NOT_WAITING });
  return (data as Apply).id;
}

/** Whether something was refused because it is no longer what was planned: others have changed something since. */
export function isOutOfDate(thrown: unknown): boolean {
  return ['plan_changed', 'apply_conflict'].includes(toApiError(thrown).code);
}
