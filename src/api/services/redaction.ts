/** Hiding the secrets of a config from whoever reads it, and keeping them when a config comes back with them hidden. */
import type { ServiceConfig } from '../../service-configs.js';

/** Keys of any service type whose values are secret. A `uri` may hold a password. */
const SECRET_KEYS: ReadonlySet<string> = new Set(['password', 'secret_key', 'private_key', 'uri']);
const HIDDEN = '***';

/** The config with its secrets hidden. */
export function hideSecrets<T extends ServiceConfig>(config: T): T {
  const entries = Object.entries(config).map(([key, value]) => [
    key,
    SECRET_KEYS.has(key) && typeof value === 'string' ? HIDDEN : value,
  ]);
  return Object.fromEntries(entries) as T;
}

/** Whether a config that was sent has secrets hidden. */
export function hasHidden(sent: object): boolean {
  return Object.entries(sent).some(([key, value]) => SECRET_KEYS.has(key) && value === HIDDEN);
}

/** A config as it was sent, with the secrets of the stored one where it has them hidden. */
export function keepHidden(sent: object, stored: ServiceConfig): object {
  const known = stored as Readonly<Record<string, unknown>>;
  const entries = Object.entries(sent).map(([key, value]) => [
    key,
    SECRET_KEYS.has(key) && value === HIDDEN ? (known[key] ?? value) : value,
  ]);
  return Object.fromEntries(entries);
}
