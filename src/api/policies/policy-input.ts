/** Policies as they come in: checked beyond their schema, and the keys of the issuers that they name are fetched. */
import { AppError } from '../../errors.js';
import { ownerOfActor } from '../../model/owner.js';
import { type PolicyProblem, problemOfPolicies, problemOfSize } from '../../model/policies/checks.js';
import type { Policies } from '../../model/policies/policies.js';
import { PrivateAddressError, requirePublicHost } from '../../util/public-address.js';
import type { Principal } from '../access/principal.js';
import type { ApiDependencies } from '../api-dependencies.js';
import { refreshKeySet } from './key-sets.js';

/** Characters of JSON; what is longer is checked in a thread. */
const LONG = 16 * 1024;

type Dependencies = Pick<ApiDependencies, 'store' | 'config' | 'log' | 'threads'>;

/**
 * @param principal whose turn it takes to check long ones
 * @param root where they stand, for messages
 * @returns warnings for the response
 * @throws AppError invalid_input naming the place
 */
export async function admitPolicies(
  policies: Policies | null | undefined,
  deps: Dependencies,
  principal: Pick<Principal, 'actor'>,
  root = 'body.policies',
): Promise<string[]> {
  if (!policies) return [];
  const problem = await problemOf(policies, deps, principal);
  if (problem)
    throw new AppError('invalid_input', `${[root, problem[0]].filter(Boolean).join('.')}: ${problem[1]}`);
  const place = `${root}.auth.jwt.jwks_url`;
  const url = policies.auth?.jwt?.jwks_url;
  if (url === undefined) return [];
  const allowsPrivate = deps.config.ALLOW_PRIVATE_URLS;
  try {
    if (!allowsPrivate) requirePublicHost(new URL(url));
    const error = await refreshKeySet(deps.store, url, allowsPrivate);
    return error === undefined
      ? []
      : [`${place}: no keys could be read (${error}); tokens are refused until they can.`];
  } catch (thrown) {
    if (!(thrown instanceof PrivateAddressError)) throw thrown;
    throw new AppError(
      'invalid_input',
      `${place}: ${thrown.message}; ALLOW_PRIVATE_URLS allows it`,
      {},
      { cause: thrown },
    );
  }
}

async function problemOf(
  policies: Policies,
  { threads }: Dependencies,
  { actor }: Pick<Principal, 'actor'>,
): Promise<PolicyProblem | undefined> {
  const tooLarge = problemOfSize(policies);
  if (tooLarge) return tooLarge;
  if (JSON.stringify(policies).length <= LONG) return problemOfPolicies(policies);
  return threads.run(ownerOfActor(actor), 'problemOfPolicies', policies);
}
