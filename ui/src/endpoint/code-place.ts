/** Places in the code of a handler, as panics, records of the log and the compiler name them. */
import type { Endpoint } from '../generated/routes.js';

/** A place of a file of Rust that a handler may have: what is absolute is of a library. */
export interface CodePlace {
  readonly file: string;
  readonly line: string;
  readonly column: string | undefined;
}

/** A place such as `src/common.rs:12:5`, or without a column; undefined: it is none. */
export function codePlaceOf(text: string): CodePlace | undefined {
  const [, file, line, column] = /^(?!\/)(.+\.rs):(\d+)(?::(\d+))?$/.exec(text) ?? [];
  return file === undefined || line === undefined ? undefined : { file: normalized(file), line, column };
}

/** `#[path = "../x.rs"]` in src/main.rs is src/../x.rs. */
function normalized(path: string): string {
  const names: string[] = [];
  for (const name of path.split('/'))
    if (name === '..') names.pop();
    else if (name !== '.') names.push(name);
  return names.join('/');
}

/** The address that leads to a place; without a file, to one of the code. */
export function addressOfPlace(
  endpointId: string,
  { file, line, column }: Omit<CodePlace, 'file'> & { readonly file: string | undefined },
): string {
  const query = new URLSearchParams({
    ...(file !== undefined && { file }),
    line,
    ...(column !== undefined && { column }),
  });
  return `/ui/endpoints/${endpointId}/code?${query}`;
}

/** Whether the draft of an endpoint has the file of a place. */
export function hasFileOf({ entry, files }: Endpoint, { file }: CodePlace): boolean {
  return file === entry || Object.hasOwn(files, file);
}

/** A text in parts: what stands between places in files of an endpoint, and these. */
export function withCodePlaces(endpoint: Endpoint, text: string): (string | CodePlace)[] {
  const files = [endpoint.entry, ...Object.keys(endpoint.files).filter((path) => path.endsWith('.rs'))];
  // Of two that end alike the longer one is meant.
  const names = files.sort((left, right) => right.length - left.length).map(escaped);
  const parts: (string | CodePlace)[] = [];
  let from = 0;
  for (const { 0: found, index, groups } of text.matchAll(placesOf(names))) {
    const { file = '', line = '', column } = groups ?? {};
    parts.push(text.slice(from, index), { file, line, column });
    from = index + found.length;
  }
  return [...parts, text.slice(from)];
}

function placesOf(names: readonly string[]): RegExp {
  return new RegExp(`(?<![\\w./-])(?<file>${names.join('|')}):(?<line>\\d+):(?<column>\\d+)`, 'g');
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
