/** Operations as an OpenAPI document may describe them: builders, and hostile ones for property tests. */
import fc from 'fast-check';
import type {
  AllowedValues,
  FormField,
  Operation,
  Parameter,
  RequestBody,
} from '../../../src/import/openapi/document.js';
import { pathParameters } from '../../../src/import/openapi/parameters.js';
import { MULTIPART, onlyIntegers, onlyTexts, URLENCODED } from './bodies.js';

/** An operation without parameters and body unless given. */
export function operation(given: Partial<Operation> = {}): Operation {
  const { method = 'GET', path = '/pets', operationId = 'listPets' } = given;
  const name = operationId ?? `${method} ${path}`;
  return { operationId, name, method, path, description: null, parameters: [], body: null, ...given };
}

export function parameter(name: string, given: Partial<Parameter> = {}): Parameter {
  const isPair = given.in === undefined || given.in === 'query' || given.in === 'cookie';
  const style = isPair ? 'form' : 'simple';
  const required = given.in === 'path';
  return { name, in: 'query', required, type: 'string', itemType: 'any', style, explode: isPair, ...given };
}

/** Each would inject code, or not compile, if it were inserted into source without escaping. */
export const HOSTILE_TEXTS = [
  '',
  ' ',
  '_',
  '__',
  '2fa',
  '-1',
  'pet id',
  'petId',
  'pet_id',
  'PET-ID',
  'ids[]',
  'filter[a][b]',
  '*/ compile_error!("out of a comment"); /*',
  '\n compile_error!("on a new line");',
  '\r compile_error!("behind a carriage return");',
  '\u2028 compile_error!("behind a line separator");',
  '\u0085 compile_error!("behind a next line");',
  '"); compile_error!("out of a string"); ("',
  '"#); compile_error!("out of a raw string"); r#"',
  '\\"); compile_error!("behind a backslash"); //',
  '\\',
  '\\u{110000}',
  '{', // for format strings
  '{}{0}{name:?}',
  '}}',
  "'",
  "'static",
  '#![deny(warnings)]',
  '//! no inner comment',
  '/// no outer comment',
  '\u202e txet desrever \u2066',
  'zero\u200bwidth\ufeff',
  'half \ud800 a pair',
  '\ud83d\ude00 \ud83d\udc68\u200d\ud83d\udc69\u200d\ud83d\udc67',
  '\u0000\u0007\u001b[31m',
  'größe',
  'Größe',
  '日本語',
  'İstanbul',
  'ſ',
  'x'.repeat(256),
  'x'.repeat(10_000),
  'word '.repeat(2_000),
  '\ud83d\ude00'.repeat(5_000),
  ...[
    'type',
    'self',
    'Self',
    'super',
    'crate',
    'gen',
    'async',
    'union',
    'try',
    'macro_rules',
    'static',
    'dyn',
  ],
  ...['req', 'body', 'form', 'answer', 'query', 'cookies', 'handle', 'main', 'entry', 'fields', 'HashMap<'],
  ...['Pairs', 'Values', 'one_of', 'TryFrom', 'Error', 'Deserialize', 'Value', 'Value2'],
  ...[
    'Response',
    'Request',
    'String',
    'Option',
    'Option<String>',
    'Some',
    'None',
    'Ok',
    'Body',
    'HashMap',
    'Vec',
  ],
  ...[
    'json',
    'std',
    'core',
    'i64',
    'bool',
    'FromStr',
    'HandlerError',
    'value',
    'field',
    'text',
    'name',
    'items',
  ],
  ...['__proto__', 'constructor', 'toString'],
];

const hostileText = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...HOSTILE_TEXTS) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 30 }) },
  { weight: 1, arbitrary: fc.string({ unit: 'grapheme', maxLength: 30 }) },
  {
    weight: 1,
    arbitrary: fc.array(fc.constantFrom(...HOSTILE_TEXTS), { maxLength: 3 }).map((all) => all.join('')),
  },
);

/** The values of an enum: few, or more than become variants of one in Rust. */
const severalOf = <Value>(value: fc.Arbitrary<Value>) =>
  fc.oneof(
    fc.uniqueArray(value, { minLength: 1, maxLength: 5 }),
    fc.uniqueArray(value, { minLength: 50, maxLength: 60 }),
  );
const hostileEnum: fc.Arbitrary<AllowedValues> = fc.oneof(
  { weight: 3, arbitrary: severalOf(hostileText).map((values) => onlyTexts(...values)) },
  { weight: 1, arbitrary: severalOf(fc.maxSafeInteger()).map((values) => onlyIntegers(...values)) },
);

const valueType = fc.constantFrom(
  'string',
  'integer',
  'number',
  'boolean',
  'array',
  'object',
  'any' as const,
);

export const TEXT_STYLES = [
  'simple',
  'label',
  'matrix',
  'form',
  'spaceDelimited',
  'pipeDelimited',
  'deepObject',
  'text',
] as const;

const textValue = {
  name: hostileText,
  required: fc.boolean(),
  type: valueType,
  itemType: valueType,
  style: fc.constantFrom(...TEXT_STYLES),
  explode: fc.boolean(),
  memberNames: fc.array(hostileText, { minLength: 1, maxLength: 4 }),
  allowed: hostileEnum,
};
const WITHOUT_OPTIONAL = ['name', 'required', 'type', 'itemType', 'style', 'explode'] as const;

const hostileParameter: fc.Arbitrary<Parameter> = fc.record(
  { ...textValue, in: fc.constantFrom('path', 'query', 'header', 'cookie' as const) },
  { requiredKeys: [...WITHOUT_OPTIONAL, 'in'] },
);

const hostileField: fc.Arbitrary<FormField> = fc.record(
  { ...textValue, isFile: fc.boolean() },
  { requiredKeys: [...WITHOUT_OPTIONAL, 'isFile'] },
);

const hostileBody: fc.Arbitrary<RequestBody> = fc.record({
  required: fc.boolean(),
  mediaType: fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom('application/json', 'application/vnd.x+json; charset=utf-8') },
    { weight: 3, arbitrary: fc.constantFrom(MULTIPART, URLENCODED) },
    { weight: 1, arbitrary: hostileText },
  ),
  type: fc.oneof(
    { weight: 3, arbitrary: fc.constant('object' as const) },
    { weight: 1, arbitrary: valueType },
  ),
  members: fc.array(
    fc.record(
      {
        name: hostileText,
        required: fc.boolean(),
        nullable: fc.boolean(),
        type: valueType,
        allowed: hostileEnum,
      },
      { requiredKeys: ['name', 'required', 'nullable', 'type'] },
    ),
    { maxLength: 12 },
  ),
  fields: fc.array(hostileField, { maxLength: 12 }),
});

/** Hostile paths that `parseRoute` accepts. */
const hostilePath = fc.constantFrom(
  '/',
  '/{id}',
  '/{type}/{Type}/{self}',
  '/{a.b}/{a-b}/{a_b}',
  '/"/{x}/\'',
  '/%22%5C/*/'.replace('*', '-'),
  '/\u202e/{_}',
  '/compile_error!("x");/{req}',
);

/** An operation from an untrusted document. */
export const hostileOperation: fc.Arbitrary<Operation> = fc
  .record({
    operationId: fc.option(hostileText),
    method: fc.constantFrom('GET', 'POST', 'PUT', 'PATCH', 'DELETE'),
    path: hostilePath,
    description: fc.option(hostileText),
    parameters: fc.array(hostileParameter, { maxLength: 8 }),
    body: fc.option(hostileBody),
  })
  .map((drawn) => operation({ ...drawn, parameters: asParsed(drawn.path, drawn.parameters) }));

/** The order and uniqueness that the parser guarantees: all path parameters first, no duplicates. */
function asParsed(path: string, drawn: readonly Parameter[]): readonly Parameter[] {
  const others = drawn.filter((one) => one.in !== 'path');
  const byKey = new Map(others.map((one) => [`${one.in} ${one.name.toLowerCase()}`, one]));
  const inPath = drawn.filter((one) => one.in === 'path').map((one) => ({ ...one, required: true }));
  return [...pathParameters(path, inPath), ...byKey.values()];
}
