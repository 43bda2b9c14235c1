/** Services: from row to answer. */
import type { Static } from '@sinclair/typebox';
import { AppError } from '../../errors.js';
import { type SecretBox, SecretKeyError } from '../../secrets.js';
import type { ServiceConfig } from '../../service-configs.js';
import type { Service } from '../../store/services.js';
import type { ServiceView } from './schema.js';

export function presentService(service: Service, secrets: SecretBox): Static<typeof ServiceView> {
  return {
    id: service.id,
    name: service.name,
    service_type: service.service_type,
    config: openConfig(service, secrets),
    enabled: service.enabled,
    created_at: service.created_at.toISOString(),
    updated_at: service.updated_at.toISOString(),
  };
}

function openConfig(service: Service, secrets: SecretBox): ServiceConfig {
  try {
    // Only checked configs are ever sealed, and sealing detects every change.
    return JSON.parse(secrets.open(service.config_encrypted)) as ServiceConfig;
  } catch (thrown) {
    if (!(thrown instanceof SecretKeyError)) throw thrown;
    throw new AppError(
      'secret_key_mismatch',
      `The config of the service "${service.name}" (${service.id}) cannot be decrypted: SECRET_KEY is not the one it was saved with`,
      {},
      { cause: thrown },
    );
  }
}
