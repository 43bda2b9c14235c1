/** Unknown members of a request body: most are ignored with a warning, probable misspellings are rejected. */
import { AppError } from '../../errors.js';

/** Maximum edit distance of a probable misspelling. */
const MAX_EDITS = 2;

/** So many are looked at, and named. */
const MAX_NAMED = 100;

/**
 * Returns warnings for unknown members, so that a client may be newer than the service.
 * @param known the members of the body
 * @param shown the members of the resource: a client may send back what it received
 * @throws AppError `invalid_input` for a probable misspelling of a known member
 */
export function warnOfUnknown(
  root: string,
  unknown: readonly string[],
  known: readonly string[],
  shown: readonly string[] = [],
): string[] {
  const named = unknown.slice(0, MAX_NAMED);
  for (const name of named.filter((candidate) => !shown.includes(candidate))) {
    const meant = known.find((candidate) => isMisspelt(name, candidate));
    if (meant !== undefined) {
      throw new AppError('invalid_input', `${root}.${name}: is not known; did you mean "${meant}"?`);
    }
  }
  const warnings = named.map((name) =>
    shown.includes(name) ? `${root}.${name}: cannot be set here and was ignored` : ignoredIn(root)(name),
  );
  const more = unknown.length - named.length;
  return more === 0 ? warnings : [...warnings, `${root}: ${more} more fields are not known and were ignored`];
}

/** Makes the text of a warning. */
export function ignoredIn(root: string): (name: string) => string {
  return (name) => `${root}.${name}: is not a known field and was ignored`;
}

/** Short names are similar by chance. */
function isMisspelt(name: string, known: string): boolean {
  if (Math.abs(name.length - known.length) > MAX_EDITS) return false;
  const edits = editDistance(name, known);
  return edits <= MAX_EDITS && edits < Math.min(name.length, known.length) / 2;
}

/** The number of insertions, deletions, replacements and transpositions (optimal string alignment). */
function editDistance(from: string, to: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (let i = 1; i <= from.length; i++) {
    const row = [i];
    for (let j = 1; j <= to.length; j++) {
      const isSame = from[i - 1] === to[j - 1];
      const isSwapped = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      row[j] = Math.min(
        (last[j] ?? 0) + 1,
        (row[j - 1] ?? 0) + 1,
        (last[j - 1] ?? 0) + (isSame ? 0 : 1),
        isSwapped ? (beforeLast[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    [beforeLast, last] = [last, row];
  }
  return last[to.length] ?? 0;
}
