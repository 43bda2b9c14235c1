/** Hides the secrets of a config in responses, and restores them when a client sends the hidden form back. */
import { AppError } from '../../errors.js';
import {
  harmlessSettings,
  type ServiceType,
  type StoredConfig,
  secretSettings,
} from '../../model/service-configs.js';

const HIDDEN = '***';

/** The config with its secrets hidden. References to secrets are shown. */
export function hideSecrets<T extends StoredConfig>(type: ServiceType, config: T): T {
  const secrets = secretSettings(type);
  const entries = Object.entries(config).map(([key, value]) => [
    key,
    secrets.has(key) && typeof value === 'string' ? HIDDEN : value,
  ]);
  return Object.fromEntries(entries) as T;
}

/** @throws AppError when a new config has a hidden secret, for which no value is stored */
export function refuseHidden(type: ServiceType, sent: object): void {
  const [key] = hiddenKeys(type, sent);
  if (key !== undefined) throw notStored(key);
}

/**
 * Refuses a change of a config that keeps secrets and changes where they are sent: whoever cannot see them could
 * otherwise have them sent to a server of their own.
 * @param sent the settings that a client changes; hidden secrets are kept
 * @param after the whole config with them
 * @throws AppError when a hidden secret is not stored, or has to be sent again
 */
export function requireSecretsAgain(
  type: ServiceType,
  before: StoredConfig,
  sent: object,
  after: StoredConfig,
): void {
  const [old, next] = [before, after].map((config) => config as Readonly<Record<string, unknown>>);
  const missing = hiddenKeys(type, sent).find((key) => typeof old?.[key] !== 'string');
  if (missing !== undefined) throw notStored(missing);
  const given = new Set(Object.keys(withoutHidden(type, sent)));
  const kept = [...secretSettings(type)].filter((key) => typeof old?.[key] === 'string' && !given.has(key));
  const mayChange = new Set([...harmlessSettings(type), ...kept]);
  const changed = [...new Set([...Object.keys(before), ...Object.keys(after)])].find(
    (key) => !mayChange.has(key) && JSON.stringify(old?.[key]) !== JSON.stringify(next?.[key]),
  );
  if (changed === undefined || kept.length === 0) return;
  const message = `config.${kept[0]}: has to be sent again, because config.${changed} changes`;
  throw new AppError('invalid_config', message);
}

/** The settings that a client sends, but for hidden secrets. */
export function withoutHidden(type: ServiceType, sent: object): Record<string, unknown> {
  const hidden = new Set(hiddenKeys(type, sent));
  return Object.fromEntries(Object.entries(sent).filter(([key]) => !hidden.has(key)));
}

/** The keys of hidden secrets in a config from a client. */
function hiddenKeys(type: ServiceType, sent: object): string[] {
  const secrets = secretSettings(type);
  return Object.entries(sent).flatMap(([key, value]) => (secrets.has(key) && value === HIDDEN ? [key] : []));
}

function notStored(key: string): AppError {
  const message = `config.${key}: "${HIDDEN}" stands for a stored secret; there is none yet`;
  return new AppError('invalid_config', message);
}
