/** A request to an endpoint, as the form has it, and as it is sent. */
import type { Input } from '../../api/client.js';

export interface Pair {
  readonly name: string;
  readonly value: string;
}

export interface Trial {
  /** Values of the parameters in the path, by name, without percent-encoding. */
  readonly path: Readonly<Record<string, string>>;
  readonly query: readonly Pair[];
  readonly headers: readonly Pair[];
  readonly body: string;
}

export interface PathParameter {
  readonly name: string;
  /** It may have slashes. */
  readonly isRest: boolean;
}

/** The parameters of a route such as `/items/{id}/files/{*path}`. */
export function parametersOf(route: string): readonly PathParameter[] {
  return [...route.matchAll(/\{(\*?)([^}]+)\}/g)].map(([, star, name = '']) => ({
    name,
    isRest: star === '*',
  }));
}

/** Path and query as they are sent; a parameter without a value stays as it is in the route. */
export function pathOf(route: string, { path, query }: Trial): string {
  const filled = route.replace(/\{(\*?)([^}]+)\}/g, (parameter: string, star: string, name: string) => {
    const value = path[name] ?? '';
    if (value === '') return parameter;
    return star === '*' ? value.split('/').map(encodeURIComponent).join('/') : encodeURIComponent(value);
  });
  const named = query.filter(({ name }) => name !== '');
  if (named.length === 0) return filled;
  return `${filled}?${new URLSearchParams(named.map(({ name, value }) => [name, value]))}`;
}

/** Methods whose requests have bodies. */
export const hasBody = (method: string): boolean => method !== 'GET';

export function bodyOf(
  method: string,
  route: string,
  trial: Trial,
): NonNullable<Input<'POST /api/endpoints/{id}/invoke'>['body']> {
  return {
    path: pathOf(route, trial),
    headers: joined(trial.headers),
    ...(hasBody(method) && trial.body !== '' && { body: trial.body }),
  };
}

/** The API has each name once; several values of a name mean the same as one with all of them (RFC 9110, 5.3). */
function joined(headers: readonly Pair[]): Record<string, string> {
  const byName = new Map<string, Pair>();
  for (const { name, value } of headers) {
    if (name === '') continue;
    const key = name.toLowerCase();
    const before = byName.get(key);
    const separator = key === 'cookie' ? '; ' : ', ';
    byName.set(
      key,
      before ? { name: before.name, value: before.value + separator + value } : { name, value },
    );
  }
  return Object.fromEntries([...byName.values()].map(({ name, value }) => [name, value]));
}

/** Values of names, parameters and headers alike, that have no name: they are not sent. */
export const isNameless = ({ name, value }: Pair): boolean => name === '' && value !== '';

/** The same request for a shell. */
export function curlOf(method: string, url: string, trial: Trial): string {
  const headers = trial.headers.filter(({ name }) => name !== '');
  // A header without a value is written with a semicolon.
  const lines = headers.map(
    ({ name, value }) => `-H ${quoted(value === '' ? `${name};` : `${name}: ${value}`)}`,
  );
  const hasContent = hasBody(method) && trial.body !== '';
  // It would say that the body is that of a form.
  const isTyped = headers.some(({ name }) => name.toLowerCase() === 'content-type');
  // Brackets and braces in a URL are patterns to it, and dots steps.
  const options = `${/[[\]{}]/.test(url) ? '-g ' : ''}${/\/\.\.?(?:[/?]|$)/.test(url) ? '--path-as-is ' : ''}`;
  return [
    `curl ${options}${method === 'GET' ? '' : `-X ${method} `}${quoted(url)}`,
    ...lines,
    ...(hasContent && !isTyped ? [`-H ${quoted('Content-Type:')}`] : []),
    // Not --data-binary: to that, a text that begins with @ is the name of a file.
    ...(hasContent ? [`--data-raw ${quoted(trial.body)}`] : []),
  ].join(' \\\n  ');
}

/** A word of a POSIX shell, whatever is in it. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
