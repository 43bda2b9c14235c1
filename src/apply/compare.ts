/** Compares objects field by field, and gives plans their hash. */
import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { changedPaths, type FileRef, type FileRefs, fileAt } from '../model/source-files.js';
import { isObject } from '../util/json-object.js';
import { eachPartOfJson, Pauses } from '../util/pauses.js';
import type { FieldChange, InstallationObject, ObjectChange } from './objects.js';

/** Members that are maps: each of their members is a field. */
const MAPS: ReadonlySet<string> = new Set([
  ...['policies', 'variables', 'dependencies', 'limits', 'bindings', 'config'],
]);

/** What the natural key says already. */
const KEY_MEMBERS: ReadonlySet<string> = new Set(['kind', 'host', 'method']);

/** The fields that differ. Of code there are digests. @param before null for a new object */
export function changedFields(before: InstallationObject | null, after: InstallationObject): FieldChange[] {
  const old = (before ?? {}) as Readonly<Record<string, unknown>>;
  const fields = Object.entries(after).flatMap(([name, value]) => {
    if (KEY_MEMBERS.has(name)) return [];
    const former = before ? old[name] : undefined;
    // Most code is as it was, and digests of all code of an installation take long.
    if (name === 'code')
      return former === value ? [] : differing('code', codeDigest(former), codeDigest(value));
    if (name === 'files') return changedFiles(former, value);
    if (name === 'lock') return differing('lock', refDigest(former), refDigest(value));
    return MAPS.has(name) ? changedMembers(name, former, value) : differing(name, former, value);
  });
  // What a new object does not have is no change.
  return before ? fields : fields.filter(({ after: value }) => !isNothing(value));
}

/** Files beside the code, by their paths, each as its digest. */
function changedFiles(before: unknown, after: unknown): FieldChange[] {
  const [old, next] = [(before ?? null) as FileRefs | null, (after ?? null) as FileRefs | null];
  return changedPaths(old, next).map((path) => ({
    path: `files.${path}`,
    before: refDigest(fileAt(old, path)),
    after: refDigest(fileAt(next, path)),
  }));
}

/** A file or a lock as plans show it. */
function refDigest(ref: unknown): string | null {
  const { digest } = (ref ?? {}) as Partial<FileRef>;
  return digest === undefined ? null : `sha256:${digest}`;
}

/** Code as plans show it. */
export function codeDigest(code: unknown): string | null {
  return typeof code === 'string' ? `sha256:${createHash('sha256').update(code).digest('hex')}` : null;
}

function changedMembers(path: string, before: unknown, after: unknown): FieldChange[] {
  if (!isObject(before) || !isObject(after)) return differing(path, before, after);
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].flatMap((name) => changedMembers(`${path}.${name}`, own(before, name), own(after, name)));
}

function differing(path: string, before: unknown, after: unknown): FieldChange[] {
  return isDeepStrictEqual(before ?? null, after ?? null)
    ? []
    : [{ path, before: before ?? null, after: after ?? null }];
}

function own(map: Readonly<Record<string, unknown>>, name: string): unknown {
  return Object.hasOwn(map, name) ? map[name] : undefined;
}

function isNothing(value: unknown): boolean {
  return value === null || (typeof value === 'object' && Object.keys(value).length === 0);
}

/** sha256 of a plan, hexadecimal. */
export async function hashOf(stack: string, changes: readonly ObjectChange[]): Promise<string> {
  const hash = createHash('sha256').update(JSON.stringify(stack));
  const pauses = new Pauses();
  for (const { action, before, after } of changes) {
    await pauses.here();
    // Schedules of an endpoint may have large bodies.
    for await (const part of eachPartOfJson([action, inOrder(before), inOrder(after)])) hash.update(part);
  }
  return hash.digest('hex');
}

/** Independent of the order of the members of objects. */
function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder);
  if (!isObject(value)) return value;
  // Pairs, not an object: a key that looks like a number would not keep its place.
  return Object.entries(value)
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([name, member]) => [name, inOrder(member)]);
}
