/**
 * Configs of services as applies write them. In a rollback, secrets that others have changed since stay; where nobody
 * has decided about that, because an apply is undone, they are not sent where older ones were either.
 */
import { isDeepStrictEqual } from 'node:util';
import type { ServiceObject } from '../apply/objects.js';
import { isReference } from '../model/secret-references.js';
import type { StoredConfig } from '../model/service-configs.js';
import { changeSecrets, movingSetting, secretsOf } from '../model/service-secrets.js';
import type { SecretBox } from '../secrets/secret-box.js';
import { openConfig } from './open-config.js';
import { completedConfig, openService } from './stored-services.js';

/** A stored config at three moments. A new service has none of them; only a rollback has the first two. */
export interface ConfigHistory {
  readonly beforeApply?: string | undefined;
  readonly afterApply?: string | undefined;
  readonly now?: string | undefined;
}

/** What nobody has decided about who sends secrets elsewhere. */
export interface ChangedSince {
  /** Secrets of the installation that were changed since. */
  readonly names: ReadonlySet<string>;
  /** It is an apply that is undone by itself: passwords of the config that were changed since count, too. */
  readonly isUndone: boolean;
}

/** What a config becomes. */
export interface WrittenConfig {
  /** The config with the values of secrets. */
  readonly config: StoredConfig;
  /** In a rollback: where secrets were changed since; they stay. */
  readonly places: readonly string[];
  /** Whether all of the config stays as it is: the changed secrets would be sent to where older ones were. */
  readonly stays: boolean;
}

/**
 * The config that an apply writes, with the values that are stored, in a rollback with those from before the apply.
 * @param service as it is to be
 * @param since in a rollback: what was changed since somebody decided about it
 * @throws AppError secret_key_mismatch; invalid_config naming the setting
 */
export function configToWrite(
  id: string,
  service: ServiceObject,
  { beforeApply, afterApply, now }: ConfigHistory,
  secrets: SecretBox,
  since?: ChangedSince,
): WrittenConfig {
  const { name, service_type: type } = service;
  const config_encrypted = beforeApply ?? now;
  let known =
    config_encrypted === undefined
      ? undefined
      : openService({ id, object: { ...service, config_encrypted } }, secrets);
  let back: WrittenConfig | undefined;
  if (known && beforeApply !== undefined && afterApply !== undefined && now !== undefined) {
    const history = { beforeApply, afterApply, now };
    back = withChangedSecrets({ id, name, service_type: type }, history, secrets, since);
    known = { ...known, config: back.config };
  }
  if (back?.stays) return back;
  const { whole } = completedConfig(type, service.config, known);
  return { config: whole, places: back?.places ?? [], stays: false };
}

/** The config that was there before an apply, with secrets of now where these were changed after it. */
function withChangedSecrets(
  service: { readonly id: string } & Pick<ServiceObject, 'name' | 'service_type'>,
  { beforeApply, afterApply, now }: { readonly [moment in keyof ConfigHistory]-?: string },
  secrets: SecretBox,
  since: ChangedSince | undefined,
): WrittenConfig {
  const open = (config_encrypted: string) => openConfig({ ...service, config_encrypted }, secrets);
  const type = service.service_type;
  const nowOpen = open(now);
  const [written, current] = [secretsOf(type, open(afterApply)), secretsOf(type, nowOpen)];
  const places: string[] = [];
  let isNew = since?.isUndone === true;
  const config = changeSecrets(type, open(beforeApply), (place, value) => {
    if (isReference(value) && since?.names.has(value.secret)) {
      places.push(place);
      isNew = true;
      return value;
    }
    if (!current.has(place) || isDeepStrictEqual(written.get(place), current.get(place))) return value;
    places.push(place);
    return current.get(place);
  }) as StoredConfig;
  if (isNew && places.length > 0 && movingSetting(type, nowOpen, config) !== undefined)
    return { config: nowOpen, places, stays: true };
  return { config, places, stays: false };
}

/** What a plan, or an outcome, says of them. */
export function changedSecretsWarning(
  name: string,
  { places, stays }: Omit<WrittenConfig, 'config'>,
): string {
  const since = `The service "${name}": ${places.join(', ')} changed since, and stays as it is`;
  return stays ? `${since}; so does all of its config, which says where it is sent` : since;
}
