/** A plan for people: bounded in size, and with the differences of code. */
import { createHash } from 'node:crypto';
import { structuredPatch } from 'diff';
import { nameOf, type ObjectKind } from './keys.js';
import type { FieldChange, InstallationObject, ObjectChange, Plan } from './objects.js';

export interface ShownField extends FieldChange {
  /** Of code. */
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
/** Of one difference of code. */
const MAX_DIFF = 16_384;
/** Of all of them: after that, only digests are shown. */
const MAX_DIFFS = 512 * 1024;
/** Code longer than this is not compared line by line. */
const MAX_COMPARED = 256 * 1024;
const DIFF_TIMEOUT_MS = 50;
const MAX_EDITS = 1_000;

/** @param withDiffs whether differences of code are shown, besides digests */
export function shownPlan(
  { stack, hash, changes, warnings }: Plan,
  { withDiffs }: { withDiffs: boolean },
): ShownPlan {
  let left = withDiffs ? MAX_DIFFS : 0;
  return {
    stack,
    plan_hash: hash,
    changes: changes.map((change) => {
      const object = (change.after ?? change.before) as InstallationObject;
      const fields = change.fields.map((field): ShownField => {
        const shown = { path: field.path, before: bounded(field.before), after: bounded(field.after) };
        const diff = field.path === 'code' && left > 0 ? codeDiff(change) : undefined;
        left -= diff?.length ?? 0;
        return diff === undefined ? shown : { ...shown, diff };
      });
      return { action: change.action, kind: object.kind, name: nameOf(object), fields };
    }),
    warnings,
  };
}

function bounded(value: unknown): unknown {
  const text = JSON.stringify(value) ?? '';
  if (text.length <= MAX_VALUE) return value;
  const digest = createHash('sha256').update(text).digest('hex');
  return { bytes: Buffer.byteLength(text), sha256: digest };
}

/** Unified, with the lines that differ; undefined when it would take too long or be too large. */
function codeDiff({ before, after }: ObjectChange): string | undefined {
  if (before?.kind !== 'endpoint' || after?.kind !== 'endpoint') return undefined;
  const [old, next] = [before.code ?? '', after.code ?? ''];
  if (old.length + next.length > MAX_COMPARED) return undefined;
  const patch = structuredPatch('before', 'after', old, next, undefined, undefined, {
    ...{ context: 3, timeout: DIFF_TIMEOUT_MS, maxEditLength: MAX_EDITS },
  });
  if (!patch) return undefined;
  const text = patch.hunks
    .map(({ oldStart, oldLines, newStart, newLines, lines }) =>
      [`@@ -${oldStart},${oldLines} +${newStart},${newLines} @@`, ...lines].join('\n'),
    )
    .join('\n');
  return text.length > MAX_DIFF ? undefined : text;
}
