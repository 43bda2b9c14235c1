/**
 * Makes of the policies in force for endpoints what the front enforces: with the keys of domains, those of issuers of
 * tokens, and the secrets that policies name.
 */
import type { CompiledAuth, CompiledRule, WholePolicies } from '../../contracts/front.js';
import { toError } from '../../errors.js';
import { type PolicyInForce, policiesInForce } from '../../model/policies/in-force.js';
import { usableKeys } from '../../model/policies/key-set.js';
import { problemOfSecret } from '../../model/policies/named-secrets.js';
import type { AuthPolicy, Policies, RateLimitPolicy } from '../../model/policies/policies.js';
import type { Store } from '../../store/database.js';
import { keysOfDomain } from '../../store/domain-keys.js';
import { readKeySet } from '../../store/key-sets.js';
import { layersOf } from '../../store/policies.js';
import type { KnownEndpoint } from '../compact-endpoint.js';
import type { Environments } from '../handlers/environments.js';
import {
  type CompiledPolicies,
  type PolicyPart,
  type PolicyParts,
  partOf,
  sha256,
  withDigest,
} from './compiled-policies.js';
import type { ValidateTexts } from './validate-texts.js';

const API_KEY_HEADER = 'X-Api-Key';
const REALM = 'api';
const TOLERANCE_SECONDS = 300;

/** Those that the front gets as they are set. */
type OtherPolicies = { readonly [Name in keyof WholePolicies]: WholePolicies[Name] | null };

/** Why an endpoint lets nobody in. */
class BrokenPolicy extends Error {
  override readonly name = 'BrokenPolicy';
}

/** Compiles policies for the endpoints of one change: what they share is read once. */
export class PolicyCompiler {
  readonly #store: Store;
  readonly #environments: Pick<Environments, 'secretsOf'>;
  readonly #validates: Pick<ValidateTexts, 'compiled'>;
  readonly #keys = new Map<string, ReturnType<typeof keysOfDomain>>();
  /** The key part of a domain, by domain and header. */
  readonly #keyParts = new Map<string, Promise<PolicyPart>>();
  readonly #keySets = new Map<string, ReturnType<typeof readKeySet>>();
  readonly #parsed = new Map<string, Policies>();
  readonly #parts = new WeakMap<object, PolicyPart>();

  constructor(
    store: Store,
    environments: Pick<Environments, 'secretsOf'>,
    validates: Pick<ValidateTexts, 'compiled'>,
  ) {
    this.#store = store;
    this.#environments = environments;
    this.#validates = validates;
  }

  /**
   * @param before the parts that it has had: large ones with the same text are taken
   * @returns undefined when nothing is in force
   */
  async compile(endpoint: KnownEndpoint, before?: PolicyParts): Promise<CompiledPolicies | undefined> {
    if (!hasPolicies(endpoint)) return undefined;
    const inForce = policiesInForce(
      layersOf({
        id: endpoint.id,
        domain_id: endpoint.domain_id,
        collection_id: endpoint.collection_id,
        domain_policies: this.#read(endpoint.domain_policies),
        collection_policies: this.#read(endpoint.collection_policies),
        own_policies: parsed(endpoint.own_policies),
      }),
    ).filter(({ policy }) => policy !== null);
    const validate =
      endpoint.validate === null ? null : await this.#validates.compiled(endpoint.domain, endpoint.validate);
    if (inForce.length === 0 && validate === null) return undefined;
    // The row has `validate` beside them, see `validate-texts.ts`.
    const {
      auth,
      rate_limit,
      body_limit,
      timeout,
      validate: _,
      ...others
    } = Object.fromEntries(inForce.map(({ name, policy }) => [name, policy])) as Policies;
    const rateLimit = inForce.find(({ name }) => name === 'rate_limit');
    const ways = auth ? await this.#authOrProblem(endpoint, auth) : { parts: {} };
    return withDigest({
      ...ways,
      ...(typeof body_limit === 'number' && { body_limit }),
      ...(typeof timeout === 'number' && { timeout }),
      parts: {
        ...Object.fromEntries(
          // What is null is not in force.
          Object.entries(others satisfies OtherPolicies).flatMap(([name, policy]) =>
            policy ? [[name, this.#part(policy, before?.[name])]] : [],
          ),
        ),
        ...ways.parts,
        ...(rateLimit && { rate_limits: partOf(rulesOf(rateLimit, rate_limit)) }),
        ...(validate !== null && { validate: partOf(validate, before?.['validate']) }),
      },
    });
  }

  /** Parses the policies of a domain or a collection, once for each text: other endpoints have the same. */
  #read(text: string | null): Policies | null {
    const policies = (text !== null && this.#parsed.get(text)) || parsed(text);
    if (text !== null && policies) this.#parsed.set(text, policies);
    return policies;
  }

  /** The part of a policy that other endpoints have, too. */
  #part(policy: object, before: PolicyPart | undefined): PolicyPart {
    const part = this.#parts.get(policy) ?? partOf(policy, before);
    this.#parts.set(policy, part);
    return part;
  }

  async #authOrProblem(
    endpoint: KnownEndpoint,
    auth: AuthPolicy,
  ): Promise<Pick<CompiledPolicies, 'parts' | 'broken' | 'jwks_url'>> {
    try {
      const parts = await this.#auth(endpoint, auth);
      const url = auth.jwt?.jwks_url;
      return { parts, ...(url !== undefined && { jwks_url: url }) };
    } catch (thrown) {
      const error = toError(thrown);
      // What cannot be read now is tried again with the whole change.
      if (error.name !== 'BrokenPolicy' && error.name !== 'HandlerStartError') throw thrown;
      return { parts: {}, broken: error.message };
    }
  }

  async #auth(endpoint: KnownEndpoint, { api_key, basic, hmac, jwt }: AuthPolicy): Promise<PolicyParts> {
    const needsSecrets = basic !== undefined || hmac !== undefined;
    const valueOfName =
      needsSecrets && (await this.#environments.secretsOf(endpoint.id, endpoint.environment));
    const secretOf = (name: string): string => {
      const secret = valueOfName ? valueOfName(name) : undefined;
      if (!secret) throw new BrokenPolicy(problemOfSecret(name, secret === null));
      return secret;
    };
    const users = Object.entries(basic?.users ?? {});
    const parts = {
      ...(api_key && { api_key: await this.#apiKeys(endpoint.domain_id, api_key.header ?? API_KEY_HEADER) }),
      ...(basic && {
        basic: partOf({
          realm: basic.realm ?? REALM,
          users: users.map(([name, secret]) => ({ name, hash: sha256(secretOf(secret)) })),
        } satisfies CompiledAuth['basic']),
      }),
      ...(hmac && {
        hmac: partOf({
          ...{ tolerance_seconds: TOLERANCE_SECONDS, ...hmac },
          secret: secretOf(hmac.secret),
        } satisfies CompiledAuth['hmac']),
      }),
      ...(jwt && { jwt: partOf((await this.#jwt(jwt)) satisfies CompiledAuth['jwt']) }),
    };
    if (Object.keys(parts).length === 0) throw new BrokenPolicy('the policy auth lets callers in by no way');
    return parts;
  }

  #apiKeys(domainId: string | null, header: string): Promise<PolicyPart> {
    const name = `${domainId} ${header}`;
    const part =
      this.#keyParts.get(name) ??
      this.#keysOf(domainId).then((keys) => partOf({ header, keys } satisfies CompiledAuth['api_key']));
    this.#keyParts.set(name, part);
    return part;
  }

  async #keysOf(domainId: string | null) {
    if (domainId === null) return [];
    const reading = this.#keys.get(domainId) ?? keysOfDomain(this.#store, domainId);
    this.#keys.set(domainId, reading);
    return (await reading).map(({ id, label, hash, expires_at }) => ({
      ...{ id, label, hash },
      expires_at: expires_at && Math.floor(expires_at.getTime() / 1000),
    }));
  }

  async #jwt({ jwks, audience, ...jwt }: NonNullable<AuthPolicy['jwt']>) {
    const keys = jwt.jwks_url === undefined ? usableKeys(jwks?.keys ?? []) : await this.#keySet(jwt.jwks_url);
    return { ...jwt, audience: [audience].flat(), keys: keys ?? [] };
  }

  async #keySet(url: string) {
    const reading = this.#keySets.get(url) ?? readKeySet(this.#store, url);
    this.#keySets.set(url, reading);
    return (await reading)?.keys;
  }
}

/** Most endpoints have none. */
export function hasPolicies({ domain_policies, collection_policies, own_policies }: KnownEndpoint): boolean {
  return domain_policies !== null || collection_policies !== null || own_policies !== null;
}

function parsed(text: string | null): Policies | null {
  return text === null ? null : (JSON.parse(text) as Policies);
}

function rulesOf({ ownerId }: PolicyInForce, policy: Policies['rate_limit']): CompiledRule[] {
  const rules = policy ? ([policy].flat() as RateLimitPolicy[]) : [];
  return rules.map((rule) => ({
    ...rule,
    id: `${ownerId} ${rule.by.toLowerCase()} ${rule.window_seconds}`,
  }));
}
