/** Paths of this server that come from outside, to which browsers are sent. */

/** No server has this name. */
const HERE = 'http://here.invalid';

/**
 * The path, with its query and fragment, as browsers read it.
 * @returns undefined when it can lead to another server, as `//host`, `/\host` and `/.//host` do
 */
export function localPath(text: string): string | undefined {
  if (!text.startsWith('/') || !URL.canParse(text, HERE)) return undefined;
  const { origin, pathname, search, hash } = new URL(text, HERE);
  return origin === HERE && !pathname.startsWith('//') ? pathname + search + hash : undefined;
}
