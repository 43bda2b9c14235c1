/** Policies as they come in: checked beyond their schema, and the keys of the issuers that they name are fetched. */
import { AppError } from '../../errors.js';
import { requireConsistent } from '../../model/policies/checks.js';
import type { Policies } from '../../model/policies/policies.js';
import { PrivateAddressError, requirePublicHost } from '../../util/public-address.js';
import type { ApiDependencies } from '../api-dependencies.js';
import { refreshKeySet } from './key-sets.js';

/**
 * @param root where they stand, for messages
 * @returns warnings for the response
 * @throws AppError invalid_input naming the place
 */
export async function admitPolicies(
  policies: Policies | null | undefined,
  deps: Pick<ApiDependencies, 'store' | 'config' | 'log'>,
  root = 'body.policies',
): Promise<string[]> {
  if (!policies) return [];
  requireConsistent(policies, root);
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
