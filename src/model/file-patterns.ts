/**
 * Patterns of paths: `*` is any part of a name, `**` any folders, and a folder stands for all that is in it; what
 * begins with a dot has to be named. (Node 20 has no `path.matchesGlob`.) The command line has a copy of this file,
 * which therefore imports nothing.
 */

/** Paths of a list that a pattern means: itself, where there is such a file; otherwise those that match. */
export function matchingPaths(paths: readonly string[], pattern: string): readonly string[] {
  return paths.includes(pattern) ? [pattern] : paths.filter((path) => matchesPattern(path, pattern));
}

/** Whether a path matches; both with `/` between folders. */
export function matchesPattern(path: string, pattern: string): boolean {
  return matchesNames(path.split('/'), 0, namesOf(pattern), 0);
}

/** Whether a path below this folder can match: other folders need not be entered. */
export function canMatchBelow(folder: string, pattern: string): boolean {
  return leadsBelow(folder.split('/'), 0, namesOf(pattern), 0);
}

/** Whether a pattern is about this folder: it matches, or the pattern names it on the way to what matches. */
export function isAbout(pattern: string, folder: string): boolean {
  if (matchesPattern(folder, pattern)) return true;
  const names = folder.split('/');
  const first = namesOf(pattern).slice(0, names.length);
  // What `**` only passes is not named.
  return !first.includes('**') && first.length === names.length && matchesNames(names, 0, first, 0);
}

function namesOf(pattern: string): string[] {
  return pattern.replace(/\/+$/, '').split('/');
}

function leadsBelow(
  folder: readonly string[],
  at: number,
  pattern: readonly string[],
  from: number,
): boolean {
  const name = folder[at];
  if (name === undefined) return true;
  if (from === pattern.length) return !folder.slice(at).some((one) => one.startsWith('.'));
  if (pattern[from] === '**')
    return (
      leadsBelow(folder, at, pattern, from + 1) ||
      (!name.startsWith('.') && leadsBelow(folder, at + 1, pattern, from))
    );
  return matchesName(name, pattern[from] ?? '') && leadsBelow(folder, at + 1, pattern, from + 1);
}

function matchesNames(
  path: readonly string[],
  at: number,
  pattern: readonly string[],
  from: number,
): boolean {
  if (from === pattern.length) return !path.slice(at).some((name) => name.startsWith('.'));
  if (pattern[from] === '**') {
    // A pattern has few names: `filePatternProblem` limits them.
    for (let next = at; next < path.length; next++) {
      if (matchesNames(path, next, pattern, from + 1)) return true;
      if (path[next]?.startsWith('.')) return false;
    }
    return false;
  }
  const name = path[at];
  return (
    name !== undefined &&
    matchesName(name, pattern[from] ?? '') &&
    matchesNames(path, at + 1, pattern, from + 1)
  );
}

/** With the least that each `*` can be: it is never wrong to leave more for what comes later. */
function matchesName(name: string, pattern: string): boolean {
  const [first = '', ...others] = pattern.split('*');
  if (others.length === 0) return name === pattern;
  if (first === '' && name.startsWith('.')) return false;
  const last = others.pop() ?? '';
  if (!name.startsWith(first) || !name.endsWith(last) || name.length < first.length + last.length)
    return false;
  let at = first.length;
  for (const part of others) {
    const found = name.indexOf(part, at);
    if (found === -1 || found + part.length > name.length - last.length) return false;
    at = found + part.length;
  }
  return true;
}

/** What is wrong with a pattern; undefined: nothing. */
export function filePatternProblem(pattern: string): string | undefined {
  const names = namesOf(pattern);
  if (pattern.startsWith('/') || names.includes('..'))
    return 'must be a path within the folder of the project';
  if (pattern.includes('\\')) return 'must have "/" between folders, not "\\"';
  if (names.some((name) => name === '' || name === '.')) return 'must not have an empty name, nor "."';
  if (names.filter((name) => name === '**').length > 2) return 'must have "**" twice at most';
  return undefined;
}
