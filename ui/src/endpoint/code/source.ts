/** What one writes of an endpoint: its code, the files beside it, and the crates that it uses. */
import type { Endpoint } from '../../generated/routes.js';

/** A crate as the form has it; what it has no field for is kept. */
export interface Crate {
  readonly name: string;
  readonly version: string;
  /** Separated by commas or spaces. */
  readonly features: string;
  readonly rest: Readonly<Record<string, unknown>>;
}

/** Files by their paths: their text, or their bytes in base64. */
export type Files = Endpoint['files'];
export type FileContent = Files[string];

export interface Source {
  /** The code, with LF at the ends of lines. */
  readonly code: string;
  readonly edition: Endpoint['edition'];
  /** The path of the code among the files. */
  readonly entry: string;
  /** The files beside the code, as the API has them. */
  readonly files: Files;
  readonly crates: readonly Crate[];
  /** The text of a Cargo.lock; null: none. */
  readonly lock: string | null;
}

type EndpointSource = Pick<Endpoint, 'code' | 'edition' | 'entry' | 'files' | 'dependencies' | 'lock'>;

export function sourceOf({ code, edition, entry, files, dependencies, lock }: EndpointSource): Source {
  const text = (code ?? '').replace(/\r\n?/g, '\n');
  return { code: text, edition, entry, files, crates: cratesOf(dependencies), lock };
}

function cratesOf(dependencies: Endpoint['dependencies']): readonly Crate[] {
  return Object.entries(dependencies ?? {})
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([name, value]) => {
      if (typeof value === 'string') return { name, version: value, features: '', rest: {} };
      const { version = '', features = [], ...rest } = value as { version?: string; features?: string[] };
      return { name, version, features: features.join(', '), rest };
    });
}

/** Dependencies for the API. Rows without a name are left out. */
export function dependenciesOf(crates: readonly Crate[]): Record<string, unknown> {
  const named = crates.filter(({ name }) => name.trim() !== '');
  return Object.fromEntries(
    named.map(({ name, version, features, rest }) => {
      const names = features.split(/[\s,]+/).filter((feature) => feature !== '');
      const isPlain = names.length === 0 && Object.keys(rest).length === 0;
      const more = { ...rest, ...(names.length > 0 && { features: names }) };
      // A crate of a git repository, or a local one, needs none.
      const hasVersion = version.trim() !== '' || !('git' in rest || 'path' in rest);
      return [
        name.trim(),
        isPlain ? version.trim() : { ...(hasVersion && { version: version.trim() }), ...more },
      ];
    }),
  );
}

/** A name that two rows have, of which the API could be given only one. */
export function doubleCrate(crates: readonly Crate[]): string | undefined {
  const names = crates.map(({ name }) => name.trim()).filter((name) => name !== '');
  return names.find((name, index) => names.indexOf(name) !== index);
}

export function isSame(left: Source, right: Source): boolean {
  if (left.code !== right.code || left.edition !== right.edition || left.lock !== right.lock) return false;
  return haveSameFiles(left, right) && haveSameCrates(left, right);
}

/** What a request has to say so that one source becomes another. */
export function changesOf(before: Source, after: Source) {
  return {
    ...(after.code !== before.code && { code: after.code }),
    ...(after.edition !== before.edition && { edition: after.edition }),
    // Together: which files there may be depends on the path of the code.
    ...(!haveSameFiles(before, after) && { entry: after.entry, files: after.files }),
    ...(!haveSameCrates(before, after) && { dependencies: dependenciesOf(after.crates) }),
    ...(after.lock !== before.lock && { lock: after.lock }),
  };
}

function haveSameFiles(left: Source, right: Source): boolean {
  if (left.entry !== right.entry) return false;
  if (left.files === right.files) return true;
  const paths = Object.keys(left.files);
  if (paths.length !== Object.keys(right.files).length) return false;
  return paths.every((path) => isSameContent(left.files[path], fileOf(right.files, path)));
}

/** Undefined where there is no such file; also for what every object has, such as `constructor`. */
export function fileOf(files: Files, path: string): FileContent | undefined {
  return Object.hasOwn(files, path) ? files[path] : undefined;
}

export function isSameContent(left: FileContent | undefined, right: FileContent | undefined): boolean {
  if (typeof left !== 'object' || typeof right !== 'object') return left === right;
  return left.base64 === right.base64;
}

function haveSameCrates(left: Source, right: Source): boolean {
  return left.crates === right.crates || keyOf(left.crates) === keyOf(right.crates);
}

function keyOf(crates: readonly Crate[]): string {
  return JSON.stringify(cratesOf(dependenciesOf(crates)));
}

/** The code and its crates, where there are some, in one text, to be compared. */
export function textOf({ code, crates }: Source): string {
  if (crates.length === 0) return code;
  const lines = JSON.stringify(dependenciesOf(crates), null, 2).split('\n');
  return `${code}\n// Crates: ${lines.join('\n// ')}\n`;
}
