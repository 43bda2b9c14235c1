/**
 * What keeps a path from being taken: whatever one program could resolve, cut off or decode in another way than the next.
 * Encoded slashes are part of a segment; two slashes in a row are an empty segment. Both stay as they are.
 */

/** Paths without any of these have nothing wrong with them. */
const SUSPICIOUS = /[%\\#]|\/\./;
const DOT_SEGMENT = /(?:^|[/\\])\.{1,2}(?:$|[/\\])/;

/** @param target path and query, as received */
export function pathProblem(target: string): string | undefined {
  if (!SUSPICIOUS.test(target)) return undefined;
  if (target.includes('#')) return 'The target of the request has a fragment ("#").';
  const query = target.indexOf('?');
  const path = query === -1 ? target : target.slice(0, query);
  if (path.includes('\\')) return 'The path of the request has a backslash.';
  const decoded = decode(path);
  if (decoded === undefined) return 'The path of the request is not percent-encoded UTF-8.';
  if (decoded.includes('\0')) return 'The path of the request has a NUL character.';
  if (DOT_SEGMENT.test(decoded)) return 'The path of the request has "." or ".." between its slashes.';
  return undefined;
}

function decode(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}
