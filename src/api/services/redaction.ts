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
 * A complete config from a client, with hidden secrets replaced by the stored ones.
 * @param openStored decrypts the stored config; called only when a secret is hidden
 * @throws AppError when a hidden secret is not stored, or a setting that decides where secrets are sent has changed
 */
export function keepHidden<T extends StoredConfig>(
  type: ServiceType,
  sent: T,
  openStored: () => StoredConfig,
): T {
  const hidden = hiddenKeys(type, sent);
  if (hidden.length === 0) return sent;
  const before = openStored() as Readonly<Record<string, unknown>>;
  const after = sent as Readonly<Record<string, unknown>>;
  const missing = hidden.find((key) => typeof before[key] !== 'string');
  if (missing !== undefined) throw notStored(missing);
  const mayChange = new Set([...harmlessSettings(type), ...hidden]);
  const changed = [...new Set([...Object.keys(before), ...Object.keys(after)])].find(
    (key) => !mayChange.has(key) && JSON.stringify(before[key]) !== JSON.stringify(after[key]),
  );
  if (changed !== undefined) {
    const message = `config.${hidden[0]}: has to be sent again, not as "${HIDDEN}", because config.${changed} changes`;
    throw new AppError('invalid_config', message);
  }
  return { ...sent, ...Object.fromEntries(hidden.map((key) => [key, before[key]])) };
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
