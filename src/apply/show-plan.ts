/** A plan for people: bounded in size, and with the differences of code. */
import { createHash } from 'node:crypto';
import { jsonSize } from '../util/json-text.js';
import { eachPartOfJson, mapInParts, Pauses } from '../util/pauses.js';
import { nameOf, type ObjectKind } from './keys.js';
import type { FieldChange, InstallationObject, ObjectChange, Plan } from './objects.js';

export interface ShownField extends FieldChange {
  /** The lines of code that differ, as hunks; not for other fields. */
  readonly diff?: string;
}

export interface ShownChange {
  readonly action: ObjectChange['action'];
  readonly kind: ObjectKind;
  readonly name: string;
  readonly fields: readonly ShownField[];
}

export interface ShownPlan {
  readonly stack: string;
  readonly plan_hash: string;
  readonly changes: readonly ShownChange[];
  readonly warnings: readonly string[];
}

/** Longest value that is shown, characters of JSON. */
const MAX_VALUE = 4_096;
/** JSON of a value with more characters, roughly, is certainly longer than that. */
const LONG = 64 * 1024;
/** Most characters of one difference of code. */
const MAX_DIFF = 16_384;
/** Most characters of all of them together: after that, only digests are shown. */
const MAX_DIFFS = 512 * 1024;
/** Code longer than this is not compared line by line. */
const MAX_COMPARED = 256 * 1024;
const DIFF_TIMEOUT_MS = 50;
const MAX_EDITS = 1_000;

/** Compares two texts, as hunks with the lines that differ; undefined when that takes too long. */
export type CompareCode = (
  before: string,
  after: string,
  limits: { readonly timeoutMs: number; readonly maxEdits: number },
) => Promise<string | undefined>;

/**
 * A plan for people, with pauses: all code is read for it.
 * @param compare for the differences of code, besides digests; a plan that is kept has none
 */
export async function shownPlan(
  { stack, hash, changes, warnings }: Plan,
  compare?: CompareCode,
): Promise<ShownPlan> {
  const pauses = new Pauses();
  const shown: ShownChange[] = [];
  let left = MAX_DIFFS;
  for (const change of changes) {
    const isCompared = left > 0 && change.fields.some(({ path }) => path === 'code');
    const diff = compare && isCompared ? await codeDiff(change, compare) : undefined;
    left -= diff?.length ?? 0;
    shown.push(await shownChange(change, diff));
    await pauses.here();
  }
  return { stack, plan_hash: hash, changes: shown, warnings };
}

async function shownChange(change: ObjectChange, diff?: string): Promise<ShownChange> {
  const object = (change.after ?? change.before) as InstallationObject;
  const fields = await mapInParts(change.fields, async ({ path, before, after }): Promise<ShownField> => {
    const shown = { path, before: await bounded(before), after: await bounded(after) };
    return path === 'code' && diff !== undefined ? { ...shown, diff } : shown;
  });
  return { action: change.action, kind: object.kind, name: nameOf(object), fields };
}

async function bounded(value: unknown): Promise<unknown> {
  if (jsonSize(value, LONG) <= LONG && (JSON.stringify(value) ?? '').length <= MAX_VALUE) return value;
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const part of eachPartOfJson(value)) {
    hash.update(part);
    bytes += Buffer.byteLength(part);
  }
  return { bytes, sha256: hash.digest('hex') };
}

/** Undefined when it would take too long or be too large. */
async function codeDiff({ before, after }: ObjectChange, compare: CompareCode): Promise<string | undefined> {
  if (before?.kind !== 'endpoint' || after?.kind !== 'endpoint') return undefined;
  const [old, next] = [before.code ?? '', after.code ?? ''];
  if (old.length + next.length > MAX_COMPARED) return undefined;
  const text = await compare(old, next, { timeoutMs: DIFF_TIMEOUT_MS, maxEdits: MAX_EDITS });
  return text === undefined || text.length > MAX_DIFF ? undefined : text;
}
