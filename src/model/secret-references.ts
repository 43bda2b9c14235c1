/** References in the configs of services: `{"secret": "NAME"}` stands for the value of a secret of the installation. */
import { problemOfVariableName } from './variable-names.js';

/** Stands where a secret would stand. */
export interface SecretReference {
  readonly secret: string;
}

/** A config in which references may stand for secrets. */
export type WithReferences<Config> = Config extends unknown
  ? { [Key in keyof Config]: Config[Key] | SecretReference }
  : never;

/** Whether a member of a config is meant as a reference, valid or not. */
export function isReference(value: unknown): value is SecretReference {
  return typeof value === 'object' && value !== null && 'secret' in value;
}

/** The names of the secrets that a config refers to, each once, sorted. What is no name is left out. */
export function secretsIn(config: object): string[] {
  const members: unknown[] = Object.values(config);
  const names: unknown[] = members.filter(isReference).map(({ secret }) => secret);
  return [...new Set(names.filter(isName))].sort();
}

function isName(name: unknown): name is string {
  return typeof name === 'string' && problemOfVariableName(name) === undefined;
}

/** A valid config with the values of its secrets. @param valueFor the value of a secret by its name */
export function withSecrets(config: object, valueFor: (name: string) => string): Record<string, unknown> {
  const members: [string, unknown][] = Object.entries(config);
  return Object.fromEntries(
    members.map(([key, value]) => [key, isReference(value) ? valueFor(value.secret) : value]),
  );
}
