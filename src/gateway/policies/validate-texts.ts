/**
 * The policy `validate` of an endpoint as the front takes it. It may be large, and a gateway keeps all endpoints: only
 * this text is kept of it, where its domain has room for it, and one for all endpoints that have the same.
 */
import { createHash } from 'node:crypto';
import type { Policies } from '../../model/policies/policies.js';
import type { ValidatePolicy } from '../../model/policies/validate.js';
import { compiledText } from '../../model/policies/validate-text.js';
import type { RoutedEndpoint } from '../../store/endpoint-runs.js';
import type { Threads } from '../../threads/threads.js';

/** So many characters of texts are kept to be shared; with more, they begin anew: most are of earlier policies. */
const MAX_SHARED_CHARACTERS = 16 * 1024 * 1024;
/** Policies of more characters are compiled in a thread, which takes some 30 ms to start; the largest take 100. */
const LONG = 64 * 1024;

type PolicyTexts = Pick<RoutedEndpoint, 'domain_policies' | 'collection_policies' | 'own_policies'>;

/** The policies of a row without `validate`, and the nearest one of that as JSON; null when there is none in force. */
export function extractValidate<T extends PolicyTexts>(row: T): T & { readonly validate: string | null } {
  let nearest: ValidatePolicy | null | undefined;
  const take = (text: string | null): string | null => {
    // Most endpoints have no `validate`, and nothing is to be parsed.
    if (!text?.includes('"validate"')) return text;
    const { validate, ...others } = JSON.parse(text) as Policies;
    if (nearest === undefined) nearest = validate;
    return JSON.stringify(others);
  };
  const own_policies = take(row.own_policies);
  const collection_policies = take(row.collection_policies);
  const domain_policies = take(row.domain_policies);
  const validate = nearest ? JSON.stringify(nearest) : null;
  return { ...row, own_policies, collection_policies, domain_policies, validate };
}

/** Compiles policies `validate`, each of several equal ones once. */
export class ValidateTexts {
  readonly #threads: Pick<Threads, 'run'>;
  readonly #shared = new Map<string, string | null>();
  #characters = 0;

  constructor(threads: Pick<Threads, 'run'>) {
    this.#threads = threads;
  }

  /**
   * @param domain whose turn it takes to compile a long one
   * @param policy its JSON
   * @returns null when it is off
   */
  async compiled(domain: string, policy: string): Promise<string | null> {
    const key = createHash('sha256').update(policy).digest('base64');
    const known = this.#shared.get(key);
    if (known !== undefined) return known;
    const isLong = policy.length > LONG;
    const text = isLong ? await this.#threads.run(domain, 'compiledText', policy) : compiledText(policy);
    this.#characters += key.length + (text?.length ?? 0);
    if (this.#characters > MAX_SHARED_CHARACTERS) {
      this.#shared.clear();
      this.#characters = 0;
    }
    this.#shared.set(key, text);
    return text;
  }
}
