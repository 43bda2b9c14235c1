/** What somebody may say of a service: hosts of theirs, servers that they may reach, secrets that they may use. */
import { AppError } from '../errors.js';
import { isWithin, scopeOf } from '../model/permission.js';
import { secretsIn } from '../model/secret-references.js';
import type { ServiceType, StoredConfig } from '../model/service-configs.js';
import type { ApiDependencies } from './api-dependencies.js';
import { maySeeSecrets, type Principal } from './principal.js';

/** The hosts that a service is given; whoever is limited to some gives only theirs. */
export function domainsFor({ scope }: Principal, domains: readonly string[]): string[] {
  const hosts = [...new Set(domains.map((host) => host.toLowerCase()))];
  if (!isWithin(scopeOf(hosts), scope))
    throw new AppError('forbidden', 'body.domains: must have hosts, and only such as are yours');
  return hosts;
}

/**
 * Files of this machine, and what only it can reach (its own ports, with them the database and the queues of this
 * product; the networks it is in), are not chosen by those who are limited to some hosts. Services of the type `http`
 * check each address they connect to; those of the other types do not.
 */
export function requireReachable(
  { config: { ALLOW_PRIVATE_URLS } }: Pick<ApiDependencies, 'config'>,
  { scope }: Principal,
  type: ServiceType,
  config: StoredConfig,
): void {
  if (!scope) return;
  if (type === 'sqlite')
    throw new AppError(
      'forbidden',
      'Files of this machine are only for those who are not limited to domains',
    );
  const isChecked = 'allow_private_addresses' in config && config.allow_private_addresses !== true;
  if (isChecked || ALLOW_PRIVATE_URLS) return;
  const what =
    type === 'http'
      ? 'config.allow_private_addresses: such addresses'
      : `Services of the type ${type}, which connect to any address,`;
  throw new AppError(
    'forbidden',
    `${what} are only for those who are not limited to domains; ALLOW_PRIVATE_URLS allows it`,
  );
}

/** Whoever may not see secrets cannot have them sent anywhere either. */
export function requireNoSecrets(principal: Principal, secrets: readonly string[]): void {
  if (secrets.length > 0 && !maySeeSecrets(principal))
    throw new AppError('forbidden', 'config: only those with the permission secrets:write refer to secrets');
}

/** A config that refers to secrets stays as it is, but for settings that do not say where they go. */
export function requireSameSecrets(before: StoredConfig, after: StoredConfig): void {
  if (secretsIn(after).length === 0) return;
  if (JSON.stringify(before) !== JSON.stringify(after))
    throw new AppError(
      'forbidden',
      'config: it refers to secrets; it is changed with the permission secrets:write',
    );
}
