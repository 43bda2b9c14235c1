/**
 * Rejects paths that two programs could resolve, truncate or decode differently. Encoded slashes are part of a segment,
 * and two slashes in a row are an empty segment; both are kept. In a query, what is no text is rejected: otherwise it
 * would become other text.
 */

/** Paths without any of these are valid. */
const SUSPICIOUS = /[%\\#]|\/\./;
const DOT_SEGMENT = /(?:^|[/\\])\.{1,2}(?:$|[/\\])/;

/**
 * The problem of a target, if any.
 * @param target path and query, as received
 */
export function requestPathProblem(target: string): string | undefined {
  if (!SUSPICIOUS.test(target)) return undefined;
  if (target.includes('#')) return 'The target of the request has a fragment ("#").';
  const query = target.indexOf('?');
  const path = query === -1 ? target : target.slice(0, query);
  if (path.includes('\\')) return 'The path of the request has a backslash.';
  const decoded = decode(path);
  if (decoded === undefined) return 'The path of the request is not percent-encoded UTF-8.';
  if (decoded.includes('\0')) return 'The path of the request has a NUL character.';
  if (DOT_SEGMENT.test(decoded)) return 'The path of the request has "." or ".." between its slashes.';
  if (query !== -1 && decode(target.slice(query)) === undefined)
    return 'The query of the request is not percent-encoded UTF-8; a "%" is written %25.';
  return undefined;
}

function decode(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}
