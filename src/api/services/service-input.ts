/** What somebody may say of a service: hosts of theirs, servers that they may reach, secrets that they may use. */
import { isDeepStrictEqual } from 'node:util';
import { AppError } from '../../errors.js';
import { isWithin, scopeOf } from '../../model/permission.js';
import { secretsIn } from '../../model/secret-references.js';
import type { ServiceType, StoredConfig } from '../../model/service-configs.js';
import { movingSetting, secretsOf } from '../../model/service-secrets.js';
import { pathOf, sqliteFolders, sqlitePathProblem } from '../../model/sqlite-folders.js';
import { maySeeSecrets, type Principal } from '../access/principal.js';
import type { ApiDependencies } from '../api-dependencies.js';
import { requireSecretsAgain } from './redaction.js';

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
function requireReachable(
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

/** A config of a service as somebody writes it, by a request for one service, an apply or its rollback. */
export interface ConfigWrite {
  readonly type: ServiceType;
  /** What is stored; undefined: the service is new, or comes back. */
  readonly before: StoredConfig | undefined;
  /** Complete, with the values of secrets that stay. */
  readonly after: StoredConfig;
  /** What they say of it; other settings stay. Undefined: all is what it once was, and nothing can be said anew. */
  readonly given: object | undefined;
}

/**
 * Decides on every write of a config: whoever may not see secrets cannot have them sent anywhere either.
 * @throws AppError forbidden; invalid_config when a secret has to be sent again
 */
export function requireMayWrite(
  deps: Pick<ApiDependencies, 'config'>,
  principal: Principal,
  { type, before, after, given }: ConfigWrite,
): void {
  if (before && isDeepStrictEqual(before, after)) return;
  requireReachable(deps, principal, type, after);
  requireAllowedFile(deps, type, before, after);
  const seesSecrets = maySeeSecrets(principal);
  if (!seesSecrets) requireNoOtherSecrets(before, after);
  if (!before && !given && !seesSecrets) requireNoSecrets(type, after);
  if (!before) return;
  if (given) {
    if (deps.config.REDACT_SECRETS || !seesSecrets) requireSecretsAgain(type, before, given, after);
  } else if (!seesSecrets) requireSecretsStay(type, before, after);
}

/** A file that is stored may have been accepted under other settings: it stays while others change. */
function requireAllowedFile(
  { config }: Pick<ApiDependencies, 'config'>,
  type: ServiceType,
  before: StoredConfig | undefined,
  after: StoredConfig,
): void {
  const path = pathOf(type, after);
  if (path === undefined || (before && pathOf(type, before) === path)) return;
  const problem = sqlitePathProblem(path, sqliteFolders(config));
  if (problem !== undefined) throw new AppError('invalid_config', `config.path: ${problem}`);
}

/** A config that refers to secrets stays as it is, and a new one refers to none. */
function requireNoOtherSecrets(before: StoredConfig | undefined, after: StoredConfig): void {
  if (secretsIn(after).length === 0) return;
  throw needsSecrets(
    before
      ? 'config: it refers to secrets; it is changed with the permission secrets:write'
      : 'config: only those with the permission secrets:write refer to secrets',
  );
}

/** A service that was deleted does not come back with secrets that only its config has. */
function requireNoSecrets(type: ServiceType, after: StoredConfig): void {
  const [place] = [...secretsOf(type, after)].find(([, secret]) => typeof secret === 'string') ?? [];
  if (place !== undefined)
    throw needsSecrets(
      `config: it had secrets (${place}) when it was deleted; it comes back with the permission secrets:write`,
    );
}

/** Secrets that are stored are not sent elsewhere, and older ones do not come back. */
function requireSecretsStay(type: ServiceType, before: StoredConfig, after: StoredConfig): void {
  const [stored, next] = [secretsOf(type, before), secretsOf(type, after)];
  const [place] = [...next.keys()].filter((name) => typeof next.get(name) === 'string');
  const changed =
    movingSetting(type, before, after) ??
    [...next.keys()].find((name) => !isDeepStrictEqual(stored.get(name), next.get(name)));
  if (place !== undefined && changed !== undefined)
    throw needsSecrets(
      `config: it has secrets (${place}), and ${changed} changes; it is changed with the permission secrets:write`,
    );
}

function needsSecrets(message: string): AppError {
  return new AppError('forbidden', message, { details: { permission: 'secrets:write' } });
}
