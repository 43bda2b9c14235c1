/** Secrets of services that others have changed since an apply wrote them: a way back restores no older ones. */
import { isDeepStrictEqual } from 'node:util';
import type { ServiceObject } from '../apply/objects.js';
import type { StoredConfig } from '../model/service-configs.js';
import { changeSecrets, secretsOf } from '../model/service-secrets.js';
import type { SecretBox } from '../secrets/secret-box.js';
import { openConfig } from './open-config.js';

/** A config at three moments, as it is stored. */
export interface ConfigHistory {
  readonly beforeApply: string;
  readonly afterApply: string;
  readonly now: string;
}

/**
 * The config that was there before an apply, with secrets of now where these were changed after it.
 * @returns it, and the places of those
 * @throws AppError secret_key_mismatch
 */
export function withChangedSecrets(
  service: { readonly id: string } & Pick<ServiceObject, 'name' | 'service_type'>,
  { beforeApply, afterApply, now }: ConfigHistory,
  secrets: SecretBox,
): { readonly config: StoredConfig; readonly places: readonly string[] } {
  const open = (config_encrypted: string) => openConfig({ ...service, config_encrypted }, secrets);
  const type = service.service_type;
  const [written, current] = [secretsOf(type, open(afterApply)), secretsOf(type, open(now))];
  const places: string[] = [];
  const config = changeSecrets(type, open(beforeApply), (place, value) => {
    if (!current.has(place) || isDeepStrictEqual(written.get(place), current.get(place))) return value;
    places.push(place);
    return current.get(place);
  });
  return { config: config as StoredConfig, places };
}

/** What a plan, or an outcome, says of them. */
export function changedSecretsWarning(name: string, places: readonly string[]): string {
  return `The service "${name}": ${places.join(', ')} changed since, and stays as it is`;
}
