/** Validates values against JSON Schemas, with readable messages. A schema is compiled when it is first used. */
import { Ajv, type ErrorObject, type SchemaObject, type ValidateFunction } from 'ajv';
import { FORMATS } from './formats.js';
import {
  type Check,
  missingMember,
  type Problem,
  type Refine,
  reason,
  shown,
  unknownMember,
} from './problems.js';

const OPTIONS = {
  allowUnionTypes: true,
  // A key that is only required in one alternative is described beside it, not inside it.
  strictRequired: false,
  verbose: true,
  // Takes as long as the rest of compiling, and makes checks no faster that are this small.
  code: { optimize: false },
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

/** A keyword for rules that no other one can say, in schemas that are not published. */
exact.addKeyword({
  keyword: 'refine',
  type: ['string', 'object'],
  validate: (problemOf: Refine<unknown>, value: unknown) => problemOf(value) === undefined,
});

/** A check of JSON values. Missing members get the schema's defaults. */
export function checkOf(schema: SchemaObject): Check {
  return checkWith(exact, schema);
}

/** A check of members that arrive as text, such as query parameters: numbers and booleans are parsed. */
export function coercingCheckOf(schema: SchemaObject): Check {
  const check = checkWith(coercing, schema);
  const types = Object.entries((schema['properties'] ?? {}) as Record<string, SchemaObject>).map(
    ([name, { type }]) => [name, String(type)] as const,
  );
  return (value) => {
    const members = value as Readonly<Record<string, unknown>>;
    for (const [name, type] of types) {
      const text = members[name];
      const message = typeof text === 'string' ? textProblem(type, text) : undefined;
      if (message !== undefined) return { path: [name], message };
    }
    return check(value);
  };
}

/** Ajv takes `0x10`, `1e1` and `Infinity` for integers, the last one whatever the bounds; and it has other words. */
function textProblem(type: string, text: string): string | undefined {
  if (type === 'integer' && !/^-?\d{1,15}$/.test(text)) return `must be a whole number, not ${shown(text)}`;
  if (type === 'boolean' && text !== 'true' && text !== 'false')
    return `must be true or false, not ${shown(text)}`;
  return undefined;
}

/** Compiles when it first checks: a process starts faster, and needs few of its schemas. */
function checkWith(ajv: Ajv, schema: SchemaObject): Check {
  let validate: ValidateFunction | undefined;
  return (value) => {
    validate ??= ajv.compile(schema);
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
    // A misspelt member explains why another one is missing.
    const unknown = unknownIn(error);
    if (unknown !== undefined) return unknownMember(path, unknown, knownIn(error));
    return missingMember(path, String(error.params['missingProperty']));
  }
  if (error.keyword === 'additionalProperties') {
    return unknownMember(path, String(error.params['additionalProperty']), knownIn(error));
  }
  return { path, message: reason(error) };
}

/** The members that an object may have. */
function knownIn({ parentSchema }: ErrorObject): string[] {
  return Object.keys((parentSchema?.['properties'] ?? {}) as object);
}

/** A member that it may not have. */
function unknownIn(error: ErrorObject): string | undefined {
  if (error.parentSchema?.['additionalProperties'] !== false) return undefined;
  const known = new Set(knownIn(error));
  return Object.keys(error.data as object).find((name) => !known.has(name));
}

function unescapePointer(part: string): string {
  return part.replaceAll('~1', '/').replaceAll('~0', '~');
}
