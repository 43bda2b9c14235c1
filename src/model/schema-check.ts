/** Validates values against JSON Schemas, with readable messages. A schema is compiled when it is first used. */
import { Ajv, type ErrorObject, type SchemaObject, type ValidateFunction } from 'ajv';
import { FORMATS } from './formats.js';
import { type Check, missingMember, type Problem, type Refine, reason, unknownMember } from './problems.js';

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
    return missingMember(path, String(error.params['missingProperty']));
  }
  if (error.keyword === 'additionalProperties') {
    const known = Object.keys((error.parentSchema?.['properties'] ?? {}) as object);
    return unknownMember(path, String(error.params['additionalProperty']), known);
  }
  return { path, message: reason(error) };
}

function unescapePointer(part: string): string {
  return part.replaceAll('~1', '/').replaceAll('~0', '~');
}
