/** The policy `validate` as the front takes it, as JSON. */
import { toError } from '../../errors.js';
import { MAX_VISITS_ONCE } from '../json-schema/text-shape.js';
import { compileValidate, type ValidatePolicy } from './validate.js';

/** @param policy its JSON. @returns null when it is off */
export function compiledText(policy: string): string | null {
  try {
    const compiled = compileValidate(JSON.parse(policy) as ValidatePolicy, MAX_VISITS_ONCE);
    return compiled ? JSON.stringify(compiled) : null;
  } catch (thrown) {
    // It was stored by a version that knows more. The front does not know this member, and lets nobody in.
    return JSON.stringify({ unusable: toError(thrown).message });
  }
}
