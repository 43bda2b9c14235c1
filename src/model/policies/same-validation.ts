/** Compares policies `validate` by what they enforce: names of components and the order of parameters mean nothing. */
import { isDeepStrictEqual } from 'node:util';
import type { CompiledValidate } from '../../contracts/front-validate.js';
import { sortedMembers } from '../../util/sorted-members.js';
import { SchemaProblem } from '../json-schema/schema-problem.js';
import { componentName } from './component-names.js';
import { compileValidate, type ValidatePolicy } from './validate.js';

/** Whether two policies take and refuse the same requests, as far as their schemas are built alike. */
export function enforceSame(one: ValidatePolicy, other: ValidatePolicy): boolean {
  try {
    // A stored policy does not have the order in which it was written, from which numbers of schemas follow.
    return isDeepStrictEqual(compiled(sortedMembers(one)), compiled(sortedMembers(other)));
  } catch (thrown) {
    // One that was stored by an older version, which took more.
    if (thrown instanceof SchemaProblem) return false;
    throw thrown;
  }
}

/** Compiles a policy with its components in the order of their use, because their numbers follow from that. */
function compiled(policy: ValidatePolicy): CompiledValidate | undefined {
  const { components, parameters = [], ...others } = policy;
  const placeOf = ({ in: where, name }: (typeof parameters)[number]) => `${where} ${name.toLowerCase()}`;
  const sorted = parameters.toSorted((left, right) => (placeOf(left) < placeOf(right) ? -1 : 1));
  const schemas = usedSchemas([sorted, others.body], components?.schemas ?? {});
  const result = compileValidate({ ...others, parameters: sorted, components: { schemas } });
  return result && { ...result, schemas: result.schemas.map(withoutNothing) };
}

/** A schema that says nothing is true. */
function withoutNothing(schema: CompiledValidate['schemas'][number]): CompiledValidate['schemas'][number] {
  return typeof schema === 'object' && Object.keys(schema).length === 0 ? true : schema;
}

/** Those to which something leads from a value, the first ones first. */
function usedSchemas(root: unknown, schemas: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const used = new Map<string, unknown>();
  const pending = [root];
  while (pending.length > 0) {
    const value = pending.pop();
    if (typeof value !== 'object' || value === null) continue;
    const { $ref: target } = value as { readonly $ref?: unknown };
    const name = typeof target === 'string' ? componentName(target) : undefined;
    if (name !== undefined && Object.hasOwn(schemas, name) && !used.has(name)) {
      used.set(name, schemas[name]);
      pending.push(schemas[name]);
    }
    pending.push(...Object.values(value).reverse());
  }
  return Object.fromEntries(used);
}
