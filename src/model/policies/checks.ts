/** The rules of policies that no schema says. */
import { textProblem } from '../formats.js';
import { SchemaProblem } from '../json-schema/schema-problem.js';
import { requireModest } from '../json-schema/size.js';
import { problemOfKey } from './key-set.js';
import type { Policies } from './policies.js';
import { compileValidate } from './validate.js';

const MAX_SHOWN_KEY = 100;

/** What is wrong: where, as names and numbers with dots between, and what. */
export type PolicyProblem = readonly [place: string, problem: string];

/** Whether they are too large or too deep, before anything goes into their depth. */
export function problemOfSize(policies: Policies): PolicyProblem | undefined {
  return problemOf(() => requireModest(policies));
}

/** The first problem of policies that fit the schema. Large schemas take long to check. */
export function problemOfPolicies(policies: Policies): PolicyProblem | undefined {
  const [first] = problems(policies);
  return first;
}

function* problems(policies: Policies): Iterable<PolicyProblem> {
  const tooLarge = problemOfSize(policies);
  if (tooLarge) return void (yield tooLarge);
  for (const [name, policy] of Object.entries(policies)) {
    const problem = textsOf(policy).map(textProblem).find(Boolean);
    if (problem !== undefined) yield [name, `its texts ${problem}`];
  }
  yield* inconsistencies(policies);
  const { validate } = policies;
  const problem = validate && problemOf(() => void compileValidate(validate), ['validate']);
  if (problem) yield problem;
}

/** The place and the problem, if there is one. */
function problemOf(check: () => void, root: readonly string[] = []): PolicyProblem | undefined {
  try {
    check();
    return undefined;
  } catch (thrown) {
    if (!(thrown instanceof SchemaProblem)) throw thrown;
    return [[...root, ...thrown.place].map(shownKey).join('.'), thrown.message];
  }
}

/** Names in schemas are whatever their author likes. */
function shownKey(key: string): string {
  return key.length > MAX_SHOWN_KEY ? `${key.slice(0, MAX_SHOWN_KEY)}…` : key;
}

/** All names and texts of a value that is not deep. */
export function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => [name, ...textsOf(member)]);
}

function* inconsistencies({ cors, auth, rate_limit, headers, validate }: Policies): Iterable<PolicyProblem> {
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
  if (validate && !validate.parameters && !validate.body) yield ['validate', 'needs parameters or body'];
}
