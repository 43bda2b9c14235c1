/** References in the configs of services: `{"secret": "NAME"}` stands for the value of a secret of the installation. */
import { problemOfVariableName } from './variable-names.js';

/** Stands where a secret would stand. */
export interface SecretReference {
  readonly secret: string;
}

/** A config in which references may stand for secrets, which are settings, or members of one that has several. */
export type WithReferences<Config> = Config extends unknown
  ? { [Key in keyof Config]: WithMembers<Config[Key]> | SecretReference }
  : never;
type WithMembers<Setting> =
  Setting extends Readonly<Record<string, string>>
    ? Readonly<Record<string, string | SecretReference>>
    : Setting;

/** Whether a member of a config is meant as a reference, valid or not. */
export function isReference(value: unknown): value is SecretReference {
  return typeof value === 'object' && value !== null && 'secret' in value;
}

/** The names of the secrets that a config refers to, each once, sorted. What is no name is left out. */
export function secretsIn(config: object): string[] {
  const settings: unknown[] = Object.values(config);
  const values = settings.flatMap((setting) => (hasMembers(setting) ? Object.values(setting) : [setting]));
  const names: unknown[] = values.filter(isReference).map(({ secret }) => secret);
  return [...new Set(names.filter(isName))].sort();
}

function isName(name: unknown): name is string {
  return typeof name === 'string' && problemOfVariableName(name) === undefined;
}

/** Whether a setting has values of its own: it is no reference. */
function hasMembers(setting: unknown): setting is Record<string, unknown> {
  return typeof setting === 'object' && setting !== null && !Array.isArray(setting) && !isReference(setting);
}

/** A valid config with the values of its secrets. @param valueFor the value of a secret by its name */
export function withSecrets(config: object, valueFor: (name: string) => string): Record<string, unknown> {
  const settings: [string, unknown][] = Object.entries(config);
  return Object.fromEntries(
    settings.map(([key, value]) => {
      if (hasMembers(value)) return [key, withSecrets(value, valueFor)];
      return [key, isReference(value) ? valueFor(value.secret) : value];
    }),
  );
}
