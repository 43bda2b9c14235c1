/** Hiding the secrets of a config from whoever reads it, and keeping them when a config comes back with them hidden. */
import { AppError } from '../../errors.js';
import type { ServiceConfig } from '../../service-configs.js';

/** Keys of any service type whose values are secret. A `uri` may hold a password. */
const SECRET_KEYS: ReadonlySet<string> = new Set(['password', 'secret_key', 'private_key', 'uri']);
const HIDDEN = '***';

/** Settings that have no say in who gets to see the secrets. With any other changed, they could be sent to a stranger. */
const HARMLESS_KEYS: ReadonlySet<string> = new Set([
  'pool_size',
  'timeout_seconds',
  'database',
  'bucket',
  'base_path',
  'from_address',
  'from_name',
]);

/** The config with its secrets hidden. */
export function hideSecrets<T extends ServiceConfig>(config: T): T {
  const entries = Object.entries(config).map(([key, value]) => [
    key,
    SECRET_KEYS.has(key) && typeof value === 'string' ? HIDDEN : value,
  ]);
  return Object.fromEntries(entries) as T;
}

/** The key of a secret that a config which was sent has hidden, if there is one. */
export function hiddenKey(sent: object): string | undefined {
  return Object.entries(sent).find(([key, value]) => SECRET_KEYS.has(key) && value === HIDDEN)?.[0];
}

/** @throws AppError when a new config has a hidden secret: there is none to keep */
export function refuseHidden(sent: object): void {
  const key = hiddenKey(sent);
  if (key !== undefined) {
    throw new AppError(
      'invalid_config',
      `config.${key}: "${HIDDEN}" stands for a stored secret; there is none yet`,
    );
  }
}

/**
 * A complete config as it was sent, with the secrets of the stored one where it has them hidden.
 * @throws AppError when settings changed that decide where the secrets are sent
 */
export function keepHidden<T extends ServiceConfig>(sent: T, stored: ServiceConfig): T {
  const before = stored as Readonly<Record<string, unknown>>;
  const after = sent as Readonly<Record<string, unknown>>;
  const secret = hiddenKey(sent);
  const changed = [...new Set([...Object.keys(before), ...Object.keys(after)])].find(
    (key) =>
      !HARMLESS_KEYS.has(key) &&
      !SECRET_KEYS.has(key) &&
      JSON.stringify(before[key]) !== JSON.stringify(after[key]),
  );
  if (changed !== undefined) {
    const message = `config.${secret}: has to be sent again, not as "${HIDDEN}", because config.${changed} changes`;
    throw new AppError('invalid_config', message);
  }
  const entries = Object.entries(after).map(([key, value]) => [
    key,
    SECRET_KEYS.has(key) && value === HIDDEN ? (before[key] ?? value) : value,
  ]);
  return Object.fromEntries(entries) as T;
}
