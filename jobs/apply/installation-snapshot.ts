/** The installation as plans see it, read within a transaction, and configs of services as they are stored. */
import { keyOf } from '../../src/apply/keys.js';
import { AppError } from '../../src/errors.js';
import {
  type ChangedSince,
  changedSecretsWarning,
  configToWrite,
} from '../../src/lifecycle/changed-secrets.js';
import { openService } from '../../src/lifecycle/stored-services.js';
import { secretsIn } from '../../src/model/secret-references.js';
import type { SecretBox } from '../../src/secrets/secret-box.js';
import type { ExistingObject } from '../../src/store/apply-commit.js';
import type { WriteContext } from '../../src/store/apply-context.js';
import { type SavedRow, savedObjects, writtenConfigs } from '../../src/store/apply-rows.js';
import type { Store } from '../../src/store/database.js';
import { readInstallationIn } from '../../src/store/installation.js';
import { secretsChangedSince } from '../../src/store/installation-secrets.js';
import { mapInParts } from '../../src/util/pauses.js';

/** All objects by their keys. @throws AppError secret_key_mismatch */
export async function readObjects(store: Store, secrets: SecretBox): Promise<Map<string, ExistingObject>> {
  const { domains, collections, endpoints, services } = await readInstallationIn(store);
  const opened = await mapInParts(services, (service) => {
    const { id, object } = openService(service, secrets);
    return { id, object };
  });
  const all: ExistingObject[] = [...domains, ...collections, ...endpoints, ...opened];
  return new Map(all.map((one) => [keyOf(one.object), one]));
}

/**
 * How configs are encrypted. A value that stays is the one that is stored; in a rollback, the one that was stored
 * before the apply, unless others have changed it after that.
 * @param before the apply that is rolled back; null: none
 * @param since in a rollback: what was changed since somebody decided about it
 */
export async function configSealer(
  store: Store,
  secrets: SecretBox,
  before: string | null,
  since: ChangedSince,
): Promise<Pick<WriteContext, 'sealConfig' | 'warnings'>> {
  const saved = before === null ? new Map<string, SavedRow>() : await savedObjects(store, before, 'service');
  const written = before === null ? new Map<string, string>() : await writtenConfigs(store, before);
  const warnings = new Set<string>();
  const sealConfig: WriteContext['sealConfig'] = (id, service, stored) => {
    const history = {
      beforeApply: saved.get(id)?.sealed ?? undefined,
      afterApply: written.get(id),
      now: stored,
    };
    try {
      const { config, ...restored } = configToWrite(id, service, history, secrets, since);
      if (restored.places.length > 0) warnings.add(changedSecretsWarning(service.name, restored));
      return { sealed: secrets.seal(JSON.stringify(config)), secrets: secretsIn(config) };
    } catch (thrown) {
      if (!(thrown instanceof AppError)) throw thrown;
      throw new AppError(
        thrown.code,
        `The service "${service.name}": ${thrown.message}`,
        {},
        { cause: thrown },
      );
    }
  };
  return { sealConfig, warnings };
}

/** Follows which secrets are changed after an apply was begun: they are read within the transaction that writes. */
export class SecretsChangedSince implements ChangedSince {
  names: ReadonlySet<string> = new Set();

  constructor(
    private readonly since: Date,
    readonly isUndone: boolean,
  ) {}

  async readObjects(tx: Store, secrets: SecretBox): Promise<Map<string, ExistingObject>> {
    this.names = await secretsChangedSince(tx, this.since);
    return readObjects(tx, secrets);
  }
}
