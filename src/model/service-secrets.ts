/** The places of a config of a service that have secrets. */
import { isDeepStrictEqual } from 'node:util';
import { harmlessSettings, type ServiceType, secretMaps, secretSettings } from './service-configs.js';

/** A config with other values of its secrets. @param change gets where each is, and its value */
export function changeSecrets(
  type: ServiceType,
  config: object,
  change: (place: string, value: unknown) => unknown,
): Record<string, unknown> {
  const [secrets, maps] = [secretSettings(type), secretMaps(type)];
  const entries: [string, unknown][] = Object.entries(config);
  return Object.fromEntries(
    entries.map(([key, value]) => {
      if (secrets.has(key)) return [key, change(key, value)];
      if (!maps.has(key) || typeof value !== 'object' || value === null || Array.isArray(value))
        return [key, value];
      const members = Object.entries(value).map(([name, one]) => [name, change(`${key}.${name}`, one)]);
      return [key, Object.fromEntries(members) as Readonly<Record<string, unknown>>];
    }),
  );
}

/** The secrets of a config by where they are: `password`, `headers.X-Token`. */
export function secretsOf(type: ServiceType, config: object): Map<string, unknown> {
  const secrets = new Map<string, unknown>();
  changeSecrets(type, config, (place, value) => {
    secrets.set(place, value);
    return value;
  });
  return secrets;
}

/**
 * A setting that decides where secrets are sent, and differs.
 * @param except settings that do not count
 */
export function movingSetting(
  type: ServiceType,
  before: object,
  after: object,
  except: readonly string[] = [],
): string | undefined {
  const [old, next] = [before, after] as Readonly<Record<string, unknown>>[];
  const mayChange = new Set([...harmlessSettings(type), ...except]);
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].find(
    (key) => !mayChange.has(key) && !isDeepStrictEqual(old?.[key], next?.[key]),
  );
}
