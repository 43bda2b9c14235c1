/** Configs of services as files have them: `{"stored": true}` stands for a secret that only the service itself has. */

import type { StoredObject } from '../apply/changes.js';
import type { ServiceObject } from '../apply/objects.js';
import { AppError } from '../errors.js';
import { isReference } from '../model/secret-references.js';
import { parseStoredConfig, type ServiceType, type StoredConfig } from '../model/service-configs.js';
import { changeSecrets, secretsOf } from '../model/service-secrets.js';
import type { SecretBox } from '../secrets/secret-box.js';
import type { SealedService } from '../store/installation.js';
import { openConfig } from './open-config.js';

const STORED = { stored: true } as const;

/** A service of the installation. `config`: with its secrets, which are in no plan. */
export interface OpenedService {
  readonly id: string;
  readonly object: ServiceObject;
  readonly config: StoredConfig;
}

/** @throws AppError secret_key_mismatch */
export function openService(
  { id, object: { config_encrypted, ...service } }: StoredObject<SealedService>,
  secrets: SecretBox,
): OpenedService {
  const config = openConfig({ id, name: service.name, config_encrypted }, secrets);
  return { id, config, object: { ...service, config: withoutValues(service.service_type, config) } };
}

/** A config of a file, and the same with the values that are stored. */
export interface CompletedConfig {
  readonly shown: ServiceObject['config'];
  readonly whole: StoredConfig;
}

/**
 * Completes the config of a file with the defaults of its type.
 * @param before the service of this name and type
 * @throws AppError invalid_config naming the setting
 */
export function completedConfig(
  type: ServiceType,
  given: object,
  before: OpenedService | undefined,
): CompletedConfig {
  const stored = before ? secretsOf(type, before.config) : new Map<string, unknown>();
  const whole = changeSecrets(type, given, (place, value) => {
    if (value === null || isReference(value)) return value;
    if (!isStored(value))
      throw new AppError(
        'invalid_config',
        `config.${place}: a file has no secrets: set one with PUT /api/secrets/NAME, and refer to it with ` +
          '{secret: NAME}; {stored: true} keeps the value that is stored',
      );
    const known = stored.get(place);
    if (known === undefined || known === null)
      throw new AppError(
        'invalid_config',
        `config.${place}: {stored: true} stands for a value that is stored, but there is none; use {secret: NAME}`,
      );
    return known;
  });
  const complete = parseStoredConfig(type, whole);
  return { shown: withoutValues(type, complete), whole: complete };
}

/** A config with what stands for secrets instead of their values. */
function withoutValues(type: ServiceType, config: object): Record<string, unknown> {
  return changeSecrets(type, config, (_, value) => (typeof value === 'string' ? STORED : value));
}

function isStored(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'stored' in value && value.stored === true;
}
