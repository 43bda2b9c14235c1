/** The rules of policies that no schema says. */
import { AppError } from '../../errors.js';
import { textProblem } from '../formats.js';
import { problemOfKey } from './key-set.js';
import type { Policies } from './policies.js';

/**
 * Checks policies that fit the schema.
 * @param root where the value stands, for the message
 * @throws AppError invalid_input naming the place
 */
export function requireConsistent(policies: Policies, root = 'body.policies'): void {
  for (const [place, problem] of problems(policies))
    throw new AppError('invalid_input', `${[root, place].join('.')}: ${problem}`);
}

function* problems(policies: Policies): Iterable<[string, string]> {
  for (const [name, policy] of Object.entries(policies)) {
    const problem = textsOf(policy).map(textProblem).find(Boolean);
    if (problem !== undefined) yield [name, `its texts ${problem}`];
  }
  yield* inconsistencies(policies);
}

function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => [name, ...textsOf(member)]);
}

function* inconsistencies({ cors, auth, rate_limit, headers }: Policies): Iterable<[string, string]> {
  if (cors?.credentials && cors.origins.includes('*'))
    yield ['cors.credentials', 'must not be true with the origin "*": name the origins'];
  const jwt = auth?.jwt;
  if (jwt && (jwt.jwks === undefined) === (jwt.jwks_url === undefined))
    yield ['auth.jwt', 'needs either jwks or jwks_url'];
  for (const [at, key] of (jwt?.jwks?.keys ?? []).entries()) {
    const problem = problemOfKey(key);
    if (problem) yield [`auth.jwt.jwks.keys.${at}`, problem];
  }
  if (auth?.jwt && auth.basic)
    yield ['auth', 'must not have both jwt and basic: both are in the header Authorization'];
  const rules = rate_limit ? [rate_limit].flat() : [];
  for (const [at, { by }] of rules.entries()) {
    const place = Array.isArray(rate_limit) ? `rate_limit.${at}.by` : 'rate_limit.by';
    if (rules.findIndex((rule) => rule.by === by && rule.window_seconds === rules[at]?.window_seconds) < at)
      yield [place, 'another rule counts by the same in a window of the same length'];
  }
  for (const side of ['request', 'response'] as const) {
    const names = (kind: 'set' | 'add') =>
      Object.keys(headers?.[side]?.[kind] ?? {}).map((name) => name.toLowerCase());
    const twice = [...names('set'), ...names('add')].find((name, at, all) => all.indexOf(name) < at);
    if (twice !== undefined) yield [`headers.${side}`, `names ${twice} twice`];
  }
}
