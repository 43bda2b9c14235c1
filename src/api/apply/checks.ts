/**
 * Checks what would change, as the routes of the API check it. What is as it was is not checked again: it may have been
 * accepted under other settings.
 */
import { isDeepStrictEqual } from 'node:util';
import pLimit from 'p-limit';
import { domainKey, keyOf, serviceKey, titleOf } from '../../apply/keys.js';
import type { EndpointObject, InstallationObject, ObjectChange, ServiceObject } from '../../apply/objects.js';
import { AppError } from '../../errors.js';
import type { OpenedService } from '../../lifecycle/stored-services.js';
import { requireCrateSources } from '../../model/crate-sources.js';
import { requireWithinSettings } from '../../model/endpoint-limits.js';
import { policyLimit } from '../../model/policies/room.js';
import { queueLimit } from '../../model/queue-room.js';
import { secretsIn } from '../../model/secret-references.js';
import type { StoredConfig } from '../../model/service-configs.js';
import type { StoredInstallation } from '../../store/installation.js';
import { requireSecrets } from '../../store/service-secrets.js';
import { Pauses } from '../../util/pauses.js';
import type { Principal } from '../access/principal.js';
import { admitPolicies } from '../policies/policy-input.js';
import { changesWithoutRoom } from '../policies/policy-room.js';
import { domainsFor, requireMayWrite } from '../services/service-input.js';
import { requireVariables } from '../variables/variable-input.js';
import type { DeclaredItem } from './declared-objects.js';
import type { PlanDependencies } from './plan-apply.js';
import { ScheduleRoom } from './schedule-room.js';
import { requireSendable } from './schedules.js';

export interface ToCheck {
  readonly changes: readonly ObjectChange[];
  /** The objects of a folder; null in a rollback, which has no folder. */
  readonly declared: readonly DeclaredItem[] | null;
  /** Configs with the secrets that are stored, or come back, by the names of services. */
  readonly configs: ReadonlyMap<string, object>;
  readonly stored: StoredInstallation;
  readonly services: readonly OpenedService[];
}

export interface CheckResult {
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

/** Issuers of tokens that are asked for their keys at a time. */
const CONCURRENT_CHECKS = 8;

export async function checkChanges(
  deps: PlanDependencies,
  principal: Principal,
  input: ToCheck,
): Promise<CheckResult> {
  const problems: string[] = [];
  const warnings: string[] = [];
  const places = new Map((input.declared ?? []).map((item) => [keyOf(item.object), item]));
  // Schemas of policies take long to check, and so do thousands of changes: other tasks run in between.
  const pauses = new Pauses();
  const after = objectsAfter(input);
  await pauses.here();
  const withoutRoom = await changesWithoutRoom(input.changes, input.stored, policyLimit(deps.config));
  await pauses.here();
  const schedules = new ScheduleRoom(input.changes, input.stored, queueLimit(deps.config));
  const limit = pLimit(CONCURRENT_CHECKS);
  const checkOne = async (change: ObjectChange, object: InstallationObject) => {
    await pauses.here();
    const at = places.get(keyOf(object));
    const check = async (member: string, run: () => unknown) => {
      try {
        const result = await run();
        if (Array.isArray(result))
          warnings.push(...result.map((text: string) => `${titleOf(object)}: ${text}`));
      } catch (thrown) {
        // Who may not is told so, whatever else is wrong.
        if (!(thrown instanceof AppError) || thrown.code === 'busy') throw thrown;
        const message = thrown.message.replace(/^body\./, '');
        if (thrown.code === 'forbidden')
          throw new AppError('forbidden', `The ${titleOf(object)}: ${message}`, thrown.extras, {
            cause: thrown,
          });
        const place = at?.members[member] ?? at?.place ?? 'The folder';
        problems.push(`${input.declared ? `${place}:` : 'The'} ${titleOf(object)}: ${message}`);
      }
    };
    const changes = new Set(change.fields.map(({ path }) => path.split('.')[0] ?? ''));
    if (object.kind === 'service') {
      await checkService(deps, principal, input, change, object, check);
      return;
    }
    if (changes.has('policies'))
      await check('policies', () => admitPolicies(object.policies, deps, principal, 'policies'));
    const tooLarge = withoutRoom.get(change);
    if (tooLarge !== undefined) await check('policies', () => invalid(`policies: ${tooLarge}`));
    if (changes.has('variables'))
      await check('variables', () =>
        requireVariables(object.variables, input.stored.ownSecrets.get(change.id ?? '') ?? []),
      );
    if (object.kind === 'collection' && !after.has(domainKey(object.host)))
      await check('host', () => invalid(`host: there is no domain with the host "${object.host}"`));
    if (at && ['code', 'entry', 'files', 'lock'].some((name) => changes.has(name)))
      problems.push(...at.sourceProblems);
    if (object.kind === 'endpoint') await checkEndpoint(deps, change, object, changes, after, check);
    if (object.kind === 'endpoint' && changes.has('schedules'))
      await check('schedules', () => schedules.require(object));
  };
  await Promise.all(
    input.changes.flatMap((change) => {
      const { after: object } = change;
      return object ? [limit(() => checkOne(change, object))] : [];
    }),
  );
  return { problems, warnings };
}

type CheckMember = (member: string, run: () => unknown) => Promise<void>;

async function checkEndpoint(
  { config }: PlanDependencies,
  { before }: ObjectChange,
  object: EndpointObject,
  changes: ReadonlySet<string>,
  after: ReadonlyMap<string, InstallationObject>,
  check: CheckMember,
): Promise<void> {
  const { limits, code, bindings, schedules, host } = object;
  if (limits && changes.has('limits'))
    await check('limits', () => requireWithinSettings(limits, config, 'limits'));
  if (code !== null && changes.has('code'))
    await check('handler', () => {
      const bytes = Buffer.byteLength(code);
      if (bytes > config.API_BODY_LIMIT_BYTES)
        invalid(`handler: has ${bytes} bytes; at most ${config.API_BODY_LIMIT_BYTES} (API_BODY_LIMIT_BYTES)`);
    });
  if (changes.has('dependencies') || changes.has('files'))
    await check('dependencies', () =>
      requireCrateSources('dependencies', object.dependencies, {
        ...{ files: object.files, allowed: config.CARGO_SOURCES },
      }),
    );
  if (changes.has('bindings'))
    await check('bindings', () => {
      for (const [pool, name] of Object.entries(bindings)) {
        const service = after.get(serviceKey(name)) as ServiceObject | undefined;
        if (!service || (service.domains.length > 0 && !service.domains.includes(host)))
          invalid(
            `bindings.${pool}: there is no service "${name}" for the host "${host}", neither here nor in the installation`,
          );
      }
    });
  if (changes.has('schedules')) {
    const known = before?.kind === 'endpoint' ? before.schedules : [];
    for (const schedule of schedules) {
      if (known.some((one) => isDeepStrictEqual(one, schedule))) continue;
      await check('schedules', () => {
        try {
          requireSendable(object, schedule, config.GATEWAY_BODY_LIMIT_BYTES);
        } catch (thrown) {
          if (!(thrown instanceof AppError)) throw thrown;
          invalid(thrown.message.replace(/^body\./, 'schedules: '));
        }
      });
    }
  }
}

async function checkService(
  deps: PlanDependencies,
  principal: Principal,
  { configs, services, stored, declared }: ToCheck,
  { id, before: former }: ObjectChange,
  object: ServiceObject,
  check: CheckMember,
): Promise<void> {
  const type = object.service_type;
  const config = configs.get(object.name) as StoredConfig;
  const before = services.find((service) => service.id === id);
  if (former?.kind !== 'service' || !isDeepStrictEqual(former.domains, object.domains))
    await check('domains', () => void domainsFor(principal, object.domains));
  if (before && isDeepStrictEqual(before.object.config, object.config)) return;
  await check('config', () => {
    const given = declared ? withoutStored(object.config) : undefined;
    requireMayWrite(deps, principal, { type, before: before?.config, after: config, given });
    requireSecrets(stored.secrets, secretsIn(config));
  });
}

/** The settings of a file that stand for nothing stored. */
function withoutStored(config: ServiceObject['config']): Record<string, unknown> {
  const isStored = (value: unknown) => typeof value === 'object' && value !== null && 'stored' in value;
  return Object.fromEntries(
    Object.entries(config).flatMap(([name, value]) => {
      if (isStored(value)) return [];
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return [[name, value]];
      return [[name, Object.fromEntries(Object.entries(value).filter(([, one]) => !isStored(one)))]];
    }),
  );
}

/** All objects as they would be, by their keys. */
function objectsAfter({ changes, stored, services }: ToCheck): ReadonlyMap<string, InstallationObject> {
  const objects = new Map<string, InstallationObject>(
    [...services, ...stored.domains].map(({ object }) => [keyOf(object), object]),
  );
  for (const { before, after } of changes) {
    if (after) objects.set(keyOf(after), after);
    else if (before) objects.delete(keyOf(before));
  }
  return objects;
}

function invalid(problem: string): never {
  throw new AppError('invalid_input', problem);
}
