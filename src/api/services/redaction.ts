/** Hides the secrets of a config in responses, and restores them when a client sends the hidden form back. */
import { AppError } from '../../errors.js';
import type { ServiceType, StoredConfig } from '../../model/service-configs.js';
import { changeSecrets, movingSetting, secretsOf } from '../../model/service-secrets.js';

const HIDDEN = '***';

/** The config with its secrets hidden, one by one. References to secrets are shown. */
export function hideSecrets<T extends StoredConfig>(type: ServiceType, config: T): T {
  return changeSecrets(type, config, (_, value) => (typeof value === 'string' ? HIDDEN : value)) as T;
}

/** @throws AppError when a new config has a hidden secret, for which no value is stored */
export function refuseHidden(type: ServiceType, sent: object): void {
  const [place] = hiddenIn(type, sent);
  if (place !== undefined) throw notStored(place);
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
  const stored = secretsOf(type, before);
  const hidden = hiddenIn(type, sent);
  const missing = hidden.find((place) => typeof stored.get(place) !== 'string');
  if (missing !== undefined) throw notStored(missing);
  const given = new Set([...secretsOf(type, sent).keys()].filter((place) => !hidden.includes(place)));
  const kept = [...secretsOf(type, after)].flatMap(([place, value]) =>
    typeof value === 'string' && !given.has(place) ? [place] : [],
  );
  const changed = movingSetting(type, before, after, kept);
  if (changed === undefined || kept.length === 0) return;
  const message = `config.${kept[0]}: has to be sent again, because config.${changed} changes`;
  throw new AppError('invalid_config', message);
}

/** The settings that a client sends, with the stored values of hidden secrets. */
export function withStored(type: ServiceType, before: StoredConfig, sent: object): Record<string, unknown> {
  const stored = secretsOf(type, before);
  return changeSecrets(type, sent, (place, value) => {
    const known = stored.get(place);
    return value === HIDDEN && typeof known === 'string' ? known : value;
  });
}

/** Where a config from a client has hidden secrets. */
function hiddenIn(type: ServiceType, sent: object): string[] {
  return [...secretsOf(type, sent)].flatMap(([place, value]) => (value === HIDDEN ? [place] : []));
}

function notStored(place: string): AppError {
  const message = `config.${place}: "${HIDDEN}" stands for a stored secret; there is none yet`;
  return new AppError('invalid_config', message);
}
