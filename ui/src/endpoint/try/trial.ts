/** A request to an endpoint, as the form has it, and as it is sent. */
import type { Input } from '../../api/client.js';

export interface Pair {
  readonly name: string;
  readonly value: string;
}

export interface Trial {
  /** Of the parameters in the path, without percent-encoding. */
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

/** Path and query as they are sent. */
export function pathOf(route: string, { path, query }: Trial): string {
  const filled = route.replace(/\{(\*?)([^}]+)\}/g, (_, star: string, name: string) => {
    const value = path[name] ?? '';
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
  const headers = trial.headers.filter(({ name }) => name !== '');
  return {
    path: pathOf(route, trial),
    headers: Object.fromEntries(headers.map(({ name, value }) => [name, value])),
    ...(hasBody(method) && trial.body !== '' && { body: trial.body }),
  };
}

/** The same request for a shell. */
export function curlOf(method: string, url: string, trial: Trial): string {
  const headers = trial.headers.filter(({ name }) => name !== '');
  // A header without a value is written with a semicolon.
  const lines = headers.map(
    ({ name, value }) => `-H ${quoted(value === '' ? `${name};` : `${name}: ${value}`)}`,
  );
  const isSimple = method === 'GET';
  return [
    `curl ${isSimple ? '' : `-X ${method} `}${quoted(url)}`,
    ...lines,
    ...(hasBody(method) && trial.body !== '' ? [`--data-binary ${quoted(trial.body)}`] : []),
  ].join(' \\\n  ');
}

/** A word of a POSIX shell, whatever is in it. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
