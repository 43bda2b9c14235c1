/** What one writes of an endpoint: its code, and the crates that it uses. */
import type { Endpoint } from '../../generated/routes.js';

/** A crate as the form has it; what it has no field for is kept. */
export interface Crate {
  readonly name: string;
  readonly version: string;
  /** Separated by commas or spaces. */
  readonly features: string;
  readonly rest: Readonly<Record<string, unknown>>;
}

export interface Source {
  /** The code, with LF at the ends of lines. */
  readonly code: string;
  readonly crates: readonly Crate[];
}

type EndpointSource = Pick<Endpoint, 'code' | 'dependencies'>;

export function sourceOf({ code, dependencies }: EndpointSource): Source {
  return { code: (code ?? '').replace(/\r\n?/g, '\n'), crates: cratesOf(dependencies) };
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
      return [name.trim(), isPlain ? version.trim() : { version: version.trim(), ...more }];
    }),
  );
}

/** A name that two rows have, of which the API could be given only one. */
export function doubleCrate(crates: readonly Crate[]): string | undefined {
  const names = crates.map(({ name }) => name.trim()).filter((name) => name !== '');
  return names.find((name, index) => names.indexOf(name) !== index);
}

export function isSame(left: Source, right: Source): boolean {
  return left.code === right.code && haveSameCrates(left, right);
}

export function haveSameCrates(left: Source, right: Source): boolean {
  return left.crates === right.crates || keyOf(left.crates) === keyOf(right.crates);
}

function keyOf(crates: readonly Crate[]): string {
  return JSON.stringify(cratesOf(dependenciesOf(crates)));
}

/** All of it in one text, to be compared: the code, and its crates where there are some. */
export function textOf({ code, crates }: Source): string {
  if (crates.length === 0) return code;
  const lines = JSON.stringify(dependenciesOf(crates), null, 2).split('\n');
  return `${code}\n// Crates: ${lines.join('\n// ')}\n`;
}
