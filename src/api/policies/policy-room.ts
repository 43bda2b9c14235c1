/** What a domain, with its collections and endpoints, may have of policies: what exceeds it is not written. */
import type { InstallationObject, ObjectChange } from '../../apply/objects.js';
import { AppError } from '../../errors.js';
import { problemOfSize } from '../../model/policies/checks.js';
import type { Policies } from '../../model/policies/policies.js';
import {
  type PolicyLimitSetting,
  policyLimit,
  tooLargeForDomain,
  weightOfPolicies,
} from '../../model/policies/room.js';
import type { StoredInstallation } from '../../store/installation.js';
import {
  hostOf,
  ownPolicies,
  type PolicyTable,
  policyWeight,
  weightOfNew,
} from '../../store/policy-weight.js';
import { KeyedQueue } from '../../util/keyed-queue.js';
import { Pauses } from '../../util/pauses.js';
import type { ApiDependencies } from '../api-dependencies.js';

/** What is written. */
export interface PolicyWrite {
  readonly table: PolicyTable;
  /** Id of the row, where it exists already. */
  readonly id?: string;
  /** Where the row is, or goes; unless it is said, it stays. */
  readonly host?: string | undefined;
  /** Id of the domain of a new collection. */
  readonly domainId?: string;
  /** Undefined: those that it has. */
  readonly policies: Policies | null | undefined;
}

type Dependencies = Pick<ApiDependencies, 'store'> & { readonly config: PolicyLimitSetting };

/**
 * Writes of one host one after the other: those that come together would all see the same room. In other processes of
 * web there may be one more each, and an apply or an import: so much more, at most, is stored than the limit, and what
 * gateways have no room for lets nobody in.
 */
const turns = new KeyedQueue();

/**
 * Writes where there is room. What makes policies smaller where they are is written in any case: they may have been
 * accepted under other settings.
 * @throws AppError invalid_input naming the place
 */
export async function withPolicyRoom<T>(
  deps: Dependencies,
  write: PolicyWrite,
  run: () => Promise<T>,
): Promise<T> {
  const host = await hostAfter(deps, write);
  if (host === undefined) return run();
  return turns.run(host, async () => {
    await requirePolicyRoom(deps, write, host);
    return run();
  });
}

/** Undefined: nothing is added anywhere, or who has a host does not exist, which the write tells. */
async function hostAfter({ store }: Dependencies, write: PolicyWrite): Promise<string | undefined> {
  const { table, id, host, domainId, policies } = write;
  if (host !== undefined) return host.toLowerCase();
  if (!policies) return undefined;
  if (id !== undefined) return hostOf(store, table, id);
  return domainId === undefined ? undefined : hostOf(store, 'domains', domainId);
}

async function requirePolicyRoom(
  { store, config }: Dependencies,
  { table, id, policies }: PolicyWrite,
  host: string,
): Promise<void> {
  const before = id === undefined ? undefined : await ownPolicies(store, table, id);
  // Who does not exist is told so by the write.
  if (id !== undefined && !before) return;
  const moves = before !== undefined && before.host !== host;
  const weight = policies === undefined ? (before?.weight ?? 0) : await weightOfNew(store, policies);
  if (before && !moves && weight <= before.weight) return;
  // A domain that gets another host takes all that it has with it.
  const moved = moves && table === 'domains' ? await policyWeight(store, before.host, id) : 0;
  if (weight + moved === 0) return;
  const limit = policyLimit(config);
  if (weight + moved + (await policyWeight(store, host, id)) <= limit) return;
  const moving = table === 'domains' ? 'host' : 'domain';
  const member = policies ? 'policies' : moving;
  throw new AppError('invalid_input', `body.${member}: ${tooLargeForDomain(host, limit)}`);
}

/**
 * Changes with which a host would have more than it may, with what is wrong: of each host the first that adds some.
 * Policies that are too large by themselves, which is another problem, are not weighed: they may be of any size.
 */
export async function changesWithoutRoom(
  changes: readonly ObjectChange[],
  stored: Pick<StoredInstallation, 'domains' | 'collections' | 'endpoints'>,
  limit: number,
): Promise<Map<ObjectChange, string>> {
  const pauses = new Pauses();
  const hosts = new Map<string, { weight: number; first: ObjectChange | undefined }>();
  const add = (object: InstallationObject | null, sign: 1 | -1, change?: ObjectChange) => {
    if (!object || object.kind === 'service' || object.policies === null) return;
    const { weight, first } = hosts.get(object.host) ?? { weight: 0, first: undefined };
    hosts.set(object.host, {
      weight: weight + sign * weightOfPolicies(object.policies),
      first: first ?? change,
    });
  };
  for (const change of changes) {
    await pauses.here();
    add(change.before, -1);
    if (!bringsTooLarge(change)) add(change.after, 1, change);
  }
  const now = [...stored.domains, ...stored.collections, ...stored.endpoints];
  const problems = new Map<ObjectChange, string>();
  for (const [host, { weight, first }] of hosts) {
    // Others may have been accepted under other settings.
    if (weight <= 0 || first === undefined) continue;
    let all = weight;
    for (const { object } of now) {
      await pauses.here();
      if (object.host === host) all += weightOfPolicies(object.policies);
    }
    if (all > limit) problems.set(first, tooLargeForDomain(host, limit));
  }
  return problems;
}

/** Whether policies are set that no domain, collection or endpoint may have. */
function bringsTooLarge({ after, fields }: ObjectChange): boolean {
  if (!after || after.kind === 'service' || after.policies === null) return false;
  const isSet = fields.some(({ path }) => path === 'policies' || path.startsWith('policies.'));
  return isSet && problemOfSize(after.policies) !== undefined;
}
