/** Opens the encrypted configs of services. */
import { AppError } from '../errors.js';
import type { StoredConfig } from '../model/service-configs.js';
import { type SecretBox, SecretKeyError } from '../secrets/secret-box.js';
import type { Service } from '../store/services.js';

/** @throws AppError secret_key_mismatch */
export function openConfig(
  service: Pick<Service, 'id' | 'name' | 'config_encrypted'>,
  secrets: SecretBox,
): StoredConfig {
  try {
    // Only validated configs are sealed, and opening detects any change.
    return JSON.parse(secrets.open(service.config_encrypted)) as StoredConfig;
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
