/** The secrets by which hosts let cargo in, read anew for each download: they may have been changed. */
import type { CrateCredential } from '../../src/build/crate-credentials.js';
import type { Config } from '../../src/config.js';
import type { SecretBox } from '../../src/secrets/secret-box.js';
import type { Store } from '../../src/store/database.js';
import { sealedInstallationSecrets } from '../../src/store/installation-secrets.js';
import type { Logger } from '../../src/util/log.js';

interface CredentialOptions {
  readonly config: Pick<Config, 'CARGO_CREDENTIALS'>;
  readonly store: Store;
  readonly secrets: Pick<SecretBox, 'open'>;
  readonly log: Logger;
}

export async function readCrateCredentials({
  config,
  store,
  secrets,
  log,
}: CredentialOptions): Promise<CrateCredential[]> {
  const { CARGO_CREDENTIALS: wanted } = config;
  if (wanted.length === 0) return [];
  const sealed = await sealedInstallationSecrets(
    store,
    wanted.map(({ secret }) => secret),
  );
  return wanted.flatMap(({ place, secret }) => {
    const value = sealed.get(secret);
    if (value !== undefined) return [{ place, secret: secrets.open(value) }];
    log.warn({ secret, place }, 'there is no secret of this name, which CARGO_CREDENTIALS wants');
    return [];
  });
}
