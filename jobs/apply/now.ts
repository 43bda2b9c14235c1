/** The installation as plans see it, read within a transaction, and configs of services as they are stored. */
import { keyOf } from '../../src/apply/keys.js';
import { AppError } from '../../src/errors.js';
import { changedSecretsWarning, withChangedSecrets } from '../../src/lifecycle/changed-secrets.js';
import { completedConfig, openService } from '../../src/lifecycle/stored-services.js';
import { secretsIn } from '../../src/model/secret-references.js';
import type { SecretBox } from '../../src/secrets/secret-box.js';
import type { ExistingObject } from '../../src/store/apply-commit.js';
import type { WriteContext } from '../../src/store/apply-context.js';
import { savedObjects, writtenConfigs } from '../../src/store/apply-rows.js';
import type { Store } from '../../src/store/database.js';
import { readInstallationIn } from '../../src/store/installation.js';

/** All objects by their keys. @throws AppError secret_key_mismatch */
export async function readObjects(store: Store, secrets: SecretBox): Promise<Map<string, ExistingObject>> {
  const { domains, collections, endpoints, services } = await readInstallationIn(store);
  const opened = services.map((service) => {
    const { id, object } = openService(service, secrets);
    return { id, object };
  });
  const all: ExistingObject[] = [...domains, ...collections, ...endpoints, ...opened];
  return new Map(all.map((one) => [keyOf(one.object), one]));
}

/**
 * How configs are encrypted. Values that stay are those that are stored; on a way back, those that were stored before
 * the apply, unless others have changed them after it.
 * @param before the apply whose way back this is; null: none
 */
export async function configSealer(
  store: Store,
  secrets: SecretBox,
  before: string | null,
): Promise<Pick<WriteContext, 'sealConfig' | 'warnings'>> {
  const [saved, written] =
    before === null
      ? [new Map(), new Map()]
      : [await savedObjects(store, before, 'service'), await writtenConfigs(store, before)];
  const warnings = new Set<string>();
  const sealConfig: WriteContext['sealConfig'] = (id, service, stored) => {
    const { name, service_type } = service;
    const beforeApply: string | undefined = saved.get(id)?.sealed;
    const afterApply: string | undefined = written.get(id);
    const config_encrypted = beforeApply ?? stored;
    let known =
      config_encrypted === undefined
        ? undefined
        : openService({ id, object: { ...service, config_encrypted } }, secrets);
    if (known && beforeApply !== undefined && afterApply !== undefined && stored !== undefined) {
      const history = { beforeApply, afterApply, now: stored };
      const { config, places } = withChangedSecrets({ id, name, service_type }, history, secrets);
      known = { ...known, config };
      if (places.length > 0) warnings.add(changedSecretsWarning(name, places));
    }
    try {
      const { whole } = completedConfig(service_type, service.config, known);
      return { sealed: secrets.seal(JSON.stringify(whole)), secrets: secretsIn(whole) };
    } catch (thrown) {
      if (!(thrown instanceof AppError)) throw thrown;
      throw new AppError(thrown.code, `The service "${name}": ${thrown.message}`, {}, { cause: thrown });
    }
  };
  return { sealConfig, warnings };
}
