/** Leaves a part of a policy out, such that no request is refused that was not before. */
import { isObject } from './json.js';

/** Within these, what allows more refuses more. */
const REVERSING = ['not', 'if', 'oneOf', 'contains'];
/** The members of these are schemas by names, and not keywords. */
const MAPS = ['properties', 'patternProperties', 'dependentSchemas', 'schemas', '$defs'];

/**
 * @param place of what cannot be
 * @returns the place of what is left out; undefined when there is nothing
 */
export function withoutPart(policy: object, place: readonly string[]): readonly string[] | undefined {
  const reversing = place.findIndex(
    (key, at) => REVERSING.includes(key) && !MAPS.includes(place[at - 1] ?? ''),
  );
  const cut = reversing < 0 ? place : place.slice(0, reversing + 1);
  const key = cut.at(-1);
  const holder = cut.slice(0, -1).reduce<unknown>((value, name) => memberOf(value, name), policy);
  if (key === undefined || typeof holder !== 'object' || holder === null) return undefined;
  const kind = cut.at(-2) ?? '';
  const isParameter = kind === 'parameters' && cut.length === 2;
  if (isParameter || memberOf(holder, key) === undefined) return undefined;
  const members = holder as Record<string, unknown>;
  if (kind === 'patternProperties') {
    delete members[key];
    // Members of such names are not additional ones.
    const schema = cut.slice(0, -2).reduce<unknown>((value, name) => memberOf(value, name), policy);
    for (const name of ['additionalProperties', 'unevaluatedProperties'])
      if (isObject(schema)) delete (schema as Record<string, unknown>)[name];
  } else if (key === 'schema' || Array.isArray(holder) || MAPS.includes(kind)) {
    if (members[key] === true) return undefined;
    members[key] = true;
  } else {
    delete members[key];
  }
  return cut;
}

function memberOf(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key)
    ? (value as Record<string, unknown>)[key]
    : undefined;
}
