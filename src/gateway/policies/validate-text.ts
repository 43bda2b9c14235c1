/**
 * The policy `validate` of an endpoint as the front takes it. It may be large, and a gateway keeps all endpoints: only
 * this text is kept of it, and one for all endpoints that have the same.
 */
import { createHash } from 'node:crypto';
import { toError } from '../../errors.js';
import { MAX_VISITS_ONCE } from '../../model/json-schema/text-shape.js';
import type { Policies } from '../../model/policies/policies.js';
import { compileValidate, type ValidatePolicy } from '../../model/policies/validate.js';
import type { RoutedEndpoint } from '../../store/endpoint-runs.js';

/** So many characters of texts are kept to be shared; with more, they begin anew: most are of earlier policies. */
const MAX_SHARED_CHARACTERS = 16 * 1024 * 1024;
const shared = new Map<string, string | null>();
let sharedCharacters = 0;

type PolicyTexts = Pick<RoutedEndpoint, 'domain_policies' | 'collection_policies' | 'own_policies'>;

/** The policies of a row without `validate`, and the nearest one of that; null when there is none in force. */
export function withoutValidate<T extends PolicyTexts>(row: T): T & { readonly validate: string | null } {
  let nearest: ValidatePolicy | null | undefined;
  const take = (text: string | null): string | null => {
    // Of most endpoints there is nothing to parse.
    if (!text?.includes('"validate"')) return text;
    const { validate, ...others } = JSON.parse(text) as Policies;
    if (nearest === undefined) nearest = validate;
    return JSON.stringify(others);
  };
  const own_policies = take(row.own_policies);
  const collection_policies = take(row.collection_policies);
  const domain_policies = take(row.domain_policies);
  const validate = nearest ? compiledText(nearest) : null;
  return { ...row, own_policies, collection_policies, domain_policies, validate };
}

function compiledText(policy: ValidatePolicy): string | null {
  const key = createHash('sha256').update(JSON.stringify(policy)).digest('base64');
  const known = shared.get(key);
  if (known !== undefined) return known;
  const text = compile(policy);
  sharedCharacters += key.length + (text?.length ?? 0);
  if (sharedCharacters > MAX_SHARED_CHARACTERS) {
    shared.clear();
    sharedCharacters = 0;
  }
  shared.set(key, text);
  return text;
}

function compile(policy: ValidatePolicy): string | null {
  try {
    const compiled = compileValidate(policy, MAX_VISITS_ONCE);
    return compiled ? JSON.stringify(compiled) : null;
  } catch (thrown) {
    // It was stored by a version that knows more. The front does not know this member, and lets nobody in.
    return JSON.stringify({ unusable: toError(thrown).message });
  }
}
