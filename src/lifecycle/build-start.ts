/** What a build begins with besides its source: a lock, so that crates stay what they are until they are updated. */
import { randomUUID } from 'node:crypto';
import { AppError } from '../errors.js';
import { cratesInLock, withoutCrates } from '../model/cargo-lock.js';
import { hasCrates } from '../model/crates.js';
import type { HandlerSource } from '../model/source-files.js';
import { type BuildStart, FROM_SOURCE } from '../model/source-key.js';
import type { Store } from '../store/database.js';
import { keepLock, readLock } from '../store/source-files.js';
import { type EndpointVersion, lockOfNewestVersion } from '../store/versions.js';

/** Crates to resolve anew: all, or those with these names. */
export type CrateUpdate = boolean | readonly string[];

/**
 * What a build of a draft begins with: the lock of the newest version of its endpoint, unless the source has one.
 * @param endpointId of an endpoint that there need not be yet
 * @throws AppError invalid_input when crates cannot be updated
 */
export async function buildStart(
  store: Store,
  endpointId: string,
  source: Pick<HandlerSource, 'dependencies' | 'lock'>,
  update: CrateUpdate = false,
): Promise<BuildStart> {
  const hasLock = source.lock !== null;
  if (hasLock && update !== false)
    throw cannotUpdate(
      'the source has a lock, which says what its crates are: change that, or set it to null',
    );
  if (hasLock || !hasCrates(source)) return FROM_SOURCE;
  if (update === true) return { lock: null, update: randomUUID() };
  const newest = await lockOfNewestVersion(store, endpointId);
  if (update === false) return { lock: newest?.lock ?? null, update: null };
  return { lock: newest ? await lockWithout(store, newest, update) : null, update: randomUUID() };
}

/** What a version begins with that is built again: its own lock. */
export function startOfVersion(version: EndpointVersion): BuildStart {
  if (version.lock || !hasCrates(version)) return FROM_SOURCE;
  return { lock: version.resolved_lock, update: null };
}

/** The lock of a version without some crates. @throws AppError invalid_input when it does not have one of them */
async function lockWithout(
  store: Store,
  { version, lock }: NonNullable<Awaited<ReturnType<typeof lockOfNewestVersion>>>,
  names: readonly string[],
): Promise<BuildStart['lock']> {
  const text = await readLock(store, lock);
  const known = new Set(cratesInLock(text).map(({ name }) => name));
  const unknown = names.find((name) => !known.has(name));
  if (unknown !== undefined)
    throw cannotUpdate(`there is no crate "${unknown}" in the lock of version ${version}`);
  return keepLock(store, withoutCrates(text, new Set(names)));
}

function cannotUpdate(problem: string): AppError {
  return new AppError('invalid_input', `body.update: ${problem}`);
}
