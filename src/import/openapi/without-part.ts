/** Leaves a part of a policy out, such that it accepts more. What that does to others: `widened-schemas.ts`. */
import type { ValidatePolicy } from '../../model/policies/validate.js';
import { isObject } from '../../util/json-object.js';
import { rootSchemas, subschemas } from './subschemas.js';
import type { WidenedSchemas } from './widened-schemas.js';

type Members = Record<string, unknown>;

/**
 * @param place of what cannot be
 * @returns the place of what is left out; undefined when there is nothing
 */
export function withoutPart(
  policy: ValidatePolicy,
  place: readonly string[],
  widened: WidenedSchemas,
): readonly string[] | undefined {
  const root = rootSchemas(policy).find((root) => isPrefix(root.place, place));
  if (!root) return withoutMediaType(policy, place);
  let { place: at, value: schema } = root;
  for (;;) {
    const rest = place.slice(at.length);
    const [keyword] = rest;
    if (!isObject(schema) || keyword === undefined) return withoutSchema(policy, at, schema, widened);
    const inner = subschemas(schema).find((inner) => isPrefix(inner.place, rest));
    // In `patternProperties`, it is the pattern that cannot be.
    if (!inner || (keyword === 'patternProperties' && rest.length === 2))
      return withoutKeyword(schema, at, rest, widened);
    at = [...at, ...inner.place];
    schema = inner.value;
  }
}

function withoutSchema(
  policy: ValidatePolicy,
  place: readonly string[],
  schema: unknown,
  widened: WidenedSchemas,
): readonly string[] | undefined {
  if (schema === true || (isObject(schema) && Object.keys(schema).length === 0)) return undefined;
  const holder = place.slice(0, -1).reduce<unknown>((value, key) => (value as Members)[key], policy);
  const anything = {};
  widened.add(anything, 'schema');
  (holder as Members)[place.at(-1) ?? ''] = anything;
  return place;
}

function withoutKeyword(
  schema: Members,
  place: readonly string[],
  rest: readonly string[],
  widened: WidenedSchemas,
): readonly string[] | undefined {
  const [keyword = '', name = ''] = rest;
  if (schema[keyword] === undefined) return undefined;
  const patterns = schema['patternProperties'];
  const isPattern = keyword === 'patternProperties' && rest.length > 1 && isObject(patterns);
  if (isPattern) delete (patterns as Members)[name];
  // Without it, it would be 1.
  else if (keyword === 'minContains') schema[keyword] = 0;
  else delete schema[keyword];
  widened.add(schema, keyword);
  // What has been described is none of the others.
  const others =
    keyword === 'properties' || keyword === 'patternProperties'
      ? 'additionalProperties'
      : keyword === 'prefixItems'
        ? 'items'
        : undefined;
  if (others !== undefined) delete schema[others];
  return [...place, ...(isPattern ? rest.slice(0, 2) : [keyword])];
}

/** Bodies of this type, and so of any that is not listed, are let through. */
function withoutMediaType(policy: ValidatePolicy, place: readonly string[]): readonly string[] | undefined {
  const [first, second, type = ''] = place;
  const content = policy.body?.content as Members | undefined;
  if (first !== 'body' || second !== 'content' || !content || content[type] === undefined) return undefined;
  delete content[type];
  content['*/*'] ??= {};
  return place.slice(0, 3);
}

function isPrefix(prefix: readonly string[], place: readonly string[]): boolean {
  return prefix.every((key, at) => place[at] === key);
}
