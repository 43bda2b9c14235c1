/** The inverse of a change, against the object that exists now: what others have changed since stays. */

import { isDeepStrictEqual } from 'node:util';
import { SOURCE_MEMBERS } from '../model/source-files.js';
import type { JsonObject } from '../util/json-object.js';
import { changedFields } from './compare.js';
import { titleOf } from './keys.js';
import type { InstallationObject, ObjectChange } from './objects.js';

/** A change, and what of it cannot be rolled back. */
export interface Inverse {
  /** Undefined: there is nothing to do. */
  readonly change: ObjectChange | undefined;
  readonly warnings: readonly string[];
}

/**
 * The inverse of a change that was made.
 * @param now the object as it is; undefined when there is none any more
 * @param sameKey what has its key now
 */
export function inverseOf(
  { id, before, after }: ObjectChange,
  now: InstallationObject | undefined,
  sameKey: InstallationObject | undefined,
): Inverse {
  if (!before && !after) return { change: undefined, warnings: [] };
  if (!before) {
    if (!now) return { change: undefined, warnings: madeAgain(sameKey) };
    const change = { action: 'delete', id, before: now, after: null, fields: [] } as const;
    const isChanged = !isDeepStrictEqual(now, after);
    return {
      change,
      warnings: isChanged ? [`The ${titleOf(now)}: was changed since, and goes all the same`] : [],
    };
  }
  if (!after) {
    if (now) return { change: undefined, warnings: madeAgain(now) };
    return {
      change: { action: 'create', id, before: null, after: before, fields: changedFields(null, before) },
      warnings: [],
    };
  }
  if (!now) return { change: undefined, warnings: [`The ${titleOf(before)}: was deleted since`] };
  return merged(id, before, after, now);
}

function madeAgain(object: InstallationObject | undefined): string[] {
  return object ? [`The ${titleOf(object)}: was made again since, and stays`] : [];
}

/** Members that mean nothing without each other: half of one source and half of another are none. */
const SOURCE = new Set<string>(SOURCE_MEMBERS);

function keptAs(since: readonly string[], together: readonly string[]): string {
  if (together.length === 1) return `${together[0]} was changed since, and stays as it is`;
  return `its source (${since.join(', ')}) was changed since, and stays as it is`;
}

function merged(
  id: string | null,
  before: InstallationObject,
  after: InstallationObject,
  now: InstallationObject,
): Inverse {
  const [old, made, is] = [before, after, now].map((object) => object as unknown as JsonObject);
  if (!old || !made || !is) throw new Error('an object is missing');
  const target: Record<string, unknown> = { ...is };
  const warnings: string[] = [];
  const names = Object.keys({ ...old, ...made }).filter((name) => !SOURCE.has(name));
  for (const together of [...names.map((name) => [name]), [...SOURCE]]) {
    const differing = (one: JsonObject, other: JsonObject) =>
      together.filter((name) => !isDeepStrictEqual(one[name], other[name]));
    if (differing(old, made).length === 0) continue;
    const since = differing(is, made);
    if (since.length === 0) for (const name of together) target[name] = old[name];
    else if (differing(is, old).length > 0) warnings.push(`The ${titleOf(now)}: ${keptAs(since, together)}`);
  }
  const back = target as unknown as InstallationObject;
  const fields = changedFields(now, back);
  if (fields.length === 0) return { change: undefined, warnings };
  return { change: { action: 'update', id, before: now, after: back, fields }, warnings };
}
