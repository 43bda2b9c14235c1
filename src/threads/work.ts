/** What runs in threads: each function is called by its name, with one argument that is copied. */
import { createTwoFilesPatch, structuredPatch } from 'diff';

export { namedFiles } from '../model/named-files.js';
export { poolsNamedIn } from '../model/named-pools.js';
export { problemOfPolicies } from '../model/policies/checks.js';
export { compiledText } from '../model/policies/validate-text.js';
export { yamlList } from '../util/yaml-text.js';

/** Two texts of a file. */
export interface Comparison {
  readonly before: string;
  readonly after: string;
  /** After so many milliseconds it is given up. */
  readonly timeoutMs: number;
}

/** @returns the difference as a unified patch of a file; undefined when it takes too long */
export function patch({
  before,
  after,
  timeoutMs,
  file,
  names: [old, next],
}: Comparison & { readonly file: string; readonly names: readonly [string, string] }): string | undefined {
  return createTwoFilesPatch(file, file, before, after, old, next, { timeout: timeoutMs });
}

/** @returns hunks with the lines that differ, without a head; undefined when it takes too long, or too many edits */
export function hunks({
  before,
  after,
  timeoutMs,
  maxEdits,
}: Comparison & { readonly maxEdits: number }): string | undefined {
  const options = { context: 3, timeout: timeoutMs, maxEditLength: maxEdits };
  const patch = structuredPatch('before', 'after', before, after, undefined, undefined, options);
  return patch?.hunks
    .map(({ oldStart, oldLines, newStart, newLines, lines }) =>
      [`@@ -${oldStart},${oldLines} +${newStart},${newLines} @@`, ...lines].join('\n'),
    )
    .join('\n');
}
