/** The rules for keys of objects, the same for the management API and for handlers. */

const MAX_BYTES = 1024;

/** The problem of a key; undefined when it is valid. */
export function objectKeyProblem(key: string): string | undefined {
  if (key === '') return 'must not be empty';
  if (Buffer.byteLength(key) > MAX_BYTES) return `must have at most ${MAX_BYTES} bytes`;
  if (key.includes('\0')) return 'must not have NUL characters';
  if (/\p{Surrogate}/u.test(key)) return 'must be Unicode text without lone surrogates';
  if (key.startsWith('/')) return 'must not begin with a slash';
  // Proxies, and servers that keep objects as files, resolve these as path segments.
  if (key.split('/').some((segment) => segment === '.' || segment === '..')) {
    return 'must not have "." or ".." between its slashes';
  }
  return undefined;
}
