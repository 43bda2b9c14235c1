/**
 * Checks values against the schemas of `schema.ts`: what these need of JSON Schema, and no more. The library that
 * checks requests of the API would take 3 of the 15 MiB that the process of an idle service has; a test compares the
 * two.
 */
import { FORMATS } from '../model/formats.js';
import {
  type Check,
  missingMember,
  type Problem,
  type Refine,
  reason,
  unknownMember,
} from '../model/problems.js';
import type { TSchema } from './schema.js';

/** Checks values of these types. */
interface Keyword {
  readonly about: readonly string[];
  readonly check: (schema: TSchema) => Check;
}

/** All JSON types. */
const ANY = ['number', 'string', 'boolean', 'null', 'array', 'object'];

/** Keywords in the order in which they are looked at. */
const KEYWORDS: readonly (readonly [name: string, keyword: Keyword])[] = [
  rule('maximum', ['number'], (most: number) => (value: number) => value <= most),
  rule('minimum', ['number'], (least: number) => (value: number) => value >= least),
  // The characters of a long text are counted only where it may be too long.
  rule(
    'maxLength',
    ['string'],
    (most: number) => (text: string) => text.length <= most || lengthOf(text) <= most,
  ),
  rule('minLength', ['string'], (least: number) => (text: string) => lengthOf(text) >= least),
  rule('pattern', ['string'], (source: string) => {
    const pattern = new RegExp(source, 'u');
    return (text: string) => pattern.test(text);
  }),
  rule('format', ['string'], (name: string) => (text: string) => FORMATS[name]?.(text) === undefined),
  rule('enum', ANY, (values: readonly unknown[]) => (value: unknown) => values.includes(value)),
  rule('maxItems', ['array'], (most: number) => (items: readonly unknown[]) => items.length <= most),
  ['items', { about: ['array'], check: itemsCheck }],
  ['properties', { about: ['object'], check: membersCheck }],
  rule(
    'refine',
    ['string', 'object'],
    (problemOf: Refine<unknown>) => (value: unknown) => problemOf(value) === undefined,
  ),
];

/** Looked at with others. */
const OTHERS = ['type', 'nullable', 'default', 'required', 'additionalProperties'];

/**
 * Missing members get the schema's defaults.
 * @throws Error for a schema with a keyword that is not known here
 */
export function checkOf(schema: TSchema): Check {
  const known = new Set([...KEYWORDS.map(([name]) => name), ...OTHERS]);
  for (const name of Object.keys(schema)) if (!known.has(name)) throw new Error(`A schema has "${name}"`);
  const types = schema['type'] === undefined ? undefined : [schema['type']].flat();
  const checks = KEYWORDS.filter(([name]) => name in schema).map(([, { about, check }]) => ({
    about,
    check: check(schema),
  }));
  return (value) => {
    if (value === null && schema['nullable'] === true) return undefined;
    const type = typeOf(value);
    if (types && !types.some((expected) => fits(value, type, expected)))
      return { path: [], message: reason({ keyword: 'type', schema: schema['type'], data: value }) };
    for (const { about, check } of checks) {
      const problem = about.includes(type) ? check(value) : undefined;
      if (problem) return problem;
    }
    return undefined;
  };
}

/** @param keeps whether a value keeps to the keyword */
function rule<S, V>(
  keyword: string,
  about: readonly string[],
  keeps: (schema: S) => (value: V) => boolean,
): readonly [string, Keyword] {
  const check = (schema: TSchema): Check => {
    const limit: unknown = schema[keyword];
    const isKept = keeps(limit as S);
    return (value) =>
      isKept(value as V) ? undefined : { path: [], message: reason({ keyword, schema: limit, data: value }) };
  };
  return [keyword, { about, check }];
}

function itemsCheck({ items }: TSchema): Check {
  const check = checkOf(items as TSchema);
  return (value) => {
    for (const [index, item] of (value as readonly unknown[]).entries()) {
      const problem = check(item);
      if (problem) return within(String(index), problem);
    }
    return undefined;
  };
}

function membersCheck({ properties, required, additionalProperties }: TSchema): Check {
  const members = Object.entries(properties as Record<string, TSchema>).map(([name, schema]) => ({
    name,
    check: checkOf(schema),
    standard: schema['default'] as unknown,
  }));
  const names = members.map(({ name }) => name);
  return (value) => {
    const object = value as Record<string, unknown>;
    for (const { name, standard } of members)
      if (standard !== undefined && object[name] === undefined) object[name] = structuredClone(standard);
    // First: a misspelt member explains why another one is missing.
    if (additionalProperties === false)
      for (const name of Object.keys(object))
        if (!names.includes(name)) return unknownMember([], name, names);
    for (const name of required as readonly string[])
      if (object[name] === undefined) return missingMember([], name);
    for (const { name, check } of members) {
      const problem = object[name] === undefined ? undefined : check(object[name]);
      if (problem) return within(name, problem);
    }
    return undefined;
  };
}

function within(key: string, { path, message }: Problem): Problem {
  return { path: [key, ...path], message };
}

function typeOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

function fits(value: unknown, type: string, expected: unknown): boolean {
  return expected === 'integer' ? Number.isInteger(value) : type === expected;
}

/** The length of a text in characters, not in UTF-16 units. */
function lengthOf(text: string): number {
  let length = 0;
  for (const _ of text) length++;
  return length;
}
