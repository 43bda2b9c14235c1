/** Validates values against JSON Schemas, with readable messages. Schemas are compiled once, where they are defined. */
import { Ajv, type ErrorObject, type SchemaObject } from 'ajv';
import { FORMATS } from './formats.js';

/** What is wrong with a value, and where in it. */
export interface Problem {
  /** The keys from the root of the value to the invalid part. */
  readonly path: readonly string[];
  readonly message: string;
}

/** Returns the first problem of a value, or undefined when it is valid. */
export type Check = (value: unknown) => Problem | undefined;

const OPTIONS = {
  allowUnionTypes: true,
  // A key that is only required in one alternative is described beside it, not inside it.
  strictRequired: false,
  verbose: true,
  formats: {
    ...Object.fromEntries(
      Object.entries(FORMATS).map(([name, problem]) => [name, (text: string) => problem(text) === undefined]),
    ),
    'date-time': true,
  },
} as const;

const exact = new Ajv({ ...OPTIONS, useDefaults: true });
const coercing = new Ajv({ ...OPTIONS, coerceTypes: true });

// Marks of `service-configs.ts`, which check nothing.
for (const ajv of [exact, coercing]) ajv.addVocabulary(['x-secret', 'x-harmless']);

/** The value of the keyword `refine`: says what is wrong with a value; undefined when nothing is. */
export type Refine<T> = (value: T) => string | undefined;

/** For rules that no other keyword can say, in schemas that are not published. */
exact.addKeyword({
  keyword: 'refine',
  type: ['string', 'object'],
  validate: (problemOf: Refine<unknown>, value: unknown) => problemOf(value) === undefined,
});

/** For JSON values. Missing members get the schema's defaults. */
export function checkOf(schema: SchemaObject): Check {
  return checkWith(exact, schema);
}

/** For values that arrive as text, such as query parameters: numbers and booleans are parsed. */
export function coercingCheckOf(schema: SchemaObject): Check {
  return checkWith(coercing, schema);
}

/** A problem as one line: `body.host: must be a hostname ...`. */
export function describeProblem(root: string, { path, message }: Problem): string {
  return `${[root, ...path].join('.')}: ${message}`;
}

function checkWith(ajv: Ajv, schema: SchemaObject): Check {
  const validate = ajv.compile(schema);
  return (value) => {
    if (validate(value)) return undefined;
    const errors = validate.errors ?? [];
    const alternatives = errors.find(({ keyword }) => keyword === 'anyOf');
    const error = alternatives ?? errors[0];
    return error ? explain(error) : { path: [], message: 'is not valid' };
  };
}

function explain(error: ErrorObject): Problem {
  const path = error.instancePath.split('/').slice(1).map(unescapePointer);
  if (error.propertyName !== undefined) {
    return { path: [...path, error.propertyName], message: reason({ ...error, data: error.propertyName }) };
  }
  if (error.keyword === 'required') {
    return { path: [...path, String(error.params['missingProperty'])], message: 'is required' };
  }
  if (error.keyword === 'additionalProperties') {
    const known = Object.keys((error.parentSchema?.['properties'] ?? {}) as object);
    return {
      path: [...path, String(error.params['additionalProperty'])],
      message: `is not accepted; possible are ${known.join(', ')}`,
    };
  }
  return { path, message: reason(error) };
}

function reason({ keyword, params, schema, data, message }: ErrorObject): string {
  switch (keyword) {
    case 'type':
      return `must be ${[schema].flat().map(withArticle).join(' or ')}, not ${kindOf(data)}`;
    case 'enum':
      return `must be one of ${(schema as unknown[]).join(', ')}, not ${JSON.stringify(data)}`;
    case 'format':
      return FORMATS[String(params['format'])]?.(String(data)) ?? `must be a ${String(params['format'])}`;
    case 'refine':
      return (schema as Refine<unknown>)(data) ?? '';
    case 'minLength':
      return schema === 1 ? 'must not be empty' : `must have at least ${String(schema)} characters`;
    case 'maxLength':
      return `must have at most ${String(schema)} characters`;
    case 'minItems':
      return `must have at least ${String(schema)} of its items`;
    case 'minimum':
      return `must be at least ${String(schema)}`;
    case 'maximum':
      return `must be at most ${String(schema)}`;
    case 'anyOf':
      return `needs ${(schema as { required?: string[] }[]).map(({ required }) => required?.join(' and ')).join(' or ')}`;
    default:
      return message ?? `breaks the rule "${keyword}"`;
  }
}

function withArticle(type: unknown): string {
  if (type === 'null') return 'null';
  return /^[aeiou]/.test(String(type)) ? `an ${String(type)}` : `a ${String(type)}`;
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  return withArticle(Array.isArray(value) ? 'array' : typeof value);
}

function unescapePointer(part: string): string {
  return part.replaceAll('~1', '/').replaceAll('~0', '~');
}
