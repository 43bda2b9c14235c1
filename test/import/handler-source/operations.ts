/** Operations as a document may have them: plain ones to start from, and as hostile as they come. */
import fc from 'fast-check';
import type {
  FormField,
  Member,
  Operation,
  Parameter,
  RequestBody,
} from '../../../src/import/openapi/document.js';
import { pathParameters } from '../../../src/import/openapi/path-parameters.js';

/** An operation without parameters and body, but for what is given. */
export function operation(given: Partial<Operation> = {}): Operation {
  const { method = 'GET', path = '/pets', operationId = 'listPets' } = given;
  const name = operationId ?? `${method} ${path}`;
  return { operationId, name, method, path, description: null, parameters: [], body: null, ...given };
}

export function parameter(name: string, given: Partial<Parameter> = {}): Parameter {
  return { name, in: 'query', required: given.in === 'path', type: 'string', itemType: 'any', ...given };
}

export function member(name: string, given: Partial<Member> = {}): Member {
  return { name, required: true, nullable: false, type: 'string', ...given };
}

export function jsonBody(members: readonly Member[], given: Partial<RequestBody> = {}): RequestBody {
  return { required: true, mediaType: 'application/json', type: 'object', members, ...given };
}

export function field(name: string, given: Partial<FormField> = {}): FormField {
  return { name, required: true, type: 'string', itemType: 'any', isFile: false, ...given };
}

export const MULTIPART = 'multipart/form-data';
export const URLENCODED = 'application/x-www-form-urlencoded';

export function formBody(
  mediaType: string,
  fields: readonly FormField[],
  given: Partial<RequestBody> = {},
): RequestBody {
  return { required: true, mediaType, type: 'any', members: [], fields, ...given };
}

/** Each would do harm, or not compile, if it became code as it is. */
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
  ...['req', 'body', 'form', 'answer', 'parse', 'optional', 'list', 'cookie', 'handle', 'main', 'entry'],
  ...['require', 'fields', 'form_value', 'HashMap<', 'Serializer>', 'FromStr<'],
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

const valueType = fc.constantFrom(
  'string',
  'integer',
  'number',
  'boolean',
  'array',
  'object',
  'any' as const,
);

const textStyle = fc.constantFrom('spaceDelimited', 'pipeDelimited', 'repeated', 'deepObject' as const);

const textValue = {
  name: hostileText,
  required: fc.boolean(),
  type: valueType,
  itemType: valueType,
  style: textStyle,
  rawStyle: hostileText,
};
const WITHOUT_STYLE = ['name', 'required', 'type', 'itemType'] as const;

const hostileParameter: fc.Arbitrary<Parameter> = fc.record(
  { ...textValue, in: fc.constantFrom('path', 'query', 'header', 'cookie' as const) },
  { requiredKeys: [...WITHOUT_STYLE, 'in'] },
);

const hostileField: fc.Arbitrary<FormField> = fc.record(
  { ...textValue, isFile: fc.boolean() },
  { requiredKeys: [...WITHOUT_STYLE, 'isFile'] },
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
    fc.record({ name: hostileText, required: fc.boolean(), nullable: fc.boolean(), type: valueType }),
    { maxLength: 12 },
  ),
  fields: fc.array(hostileField, { maxLength: 12 }),
});

/** As hostile as `parseRoute` lets a path be. */
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

/** An operation of a stranger. */
export const hostileOperation: fc.Arbitrary<Operation> = fc
  .record({
    operationId: fc.option(hostileText),
    method: fc.constantFrom('GET', 'POST', 'PUT', 'PATCH', 'DELETE'),
    path: hostilePath,
    description: fc.option(hostileText),
    parameters: fc.array(hostileParameter, { maxLength: 8 }),
    body: fc.option(hostileBody),
  })
  .map((drawn) => operation({ ...drawn, parameters: asRead(drawn.path, drawn.parameters) }));

/** As documents are read: those of the path first, all of them, and none twice. */
function asRead(path: string, drawn: readonly Parameter[]): readonly Parameter[] {
  const others = drawn.filter((one) => one.in !== 'path');
  const byKey = new Map(others.map((one) => [`${one.in} ${one.name.toLowerCase()}`, one]));
  const inPath = drawn.filter((one) => one.in === 'path').map((one) => ({ ...one, required: true }));
  return [...pathParameters(path, inPath), ...byKey.values()];
}
