/** The part of a generated handler that takes the body apart. */
import type { Member, RequestBody, ValueType } from '../openapi/document.js';
import { readForm } from './form.js';
import type { Helper } from './helpers.js';
import { bodyStruct, type FieldSource, structFields } from './rust-struct.js';

/** A body in a handler. */
export interface ReadBody {
  /** Source of the type that it is read as; empty when there is one already. */
  readonly definition: readonly string[];
  /** Lines that define `body`, or `form`, and check it. */
  readonly statements: readonly string[];
  /** What the answer shows of it: an expression. */
  readonly shown: string;
  readonly helpers: readonly Helper[];
  /** Those that its source names. */
  readonly types: readonly string[];
}

const MISSING = [
  '    if body.is_empty() {',
  '        return Err(HandlerError::BadRequest("Missing required body".into()));',
  '    }',
];

/** How a handler reads the body of this media type: JSON as its type, a form by its fields, all else as bytes. */
export function readBody(body: RequestBody): ReadBody {
  const mediaType = body.mediaType.split(';')[0]?.trim().toLowerCase() ?? '';
  if (mediaType === 'application/json' || mediaType.endsWith('+json')) return jsonBody(body);
  if (mediaType === 'multipart/form-data') return readForm(body, 'multipart');
  if (mediaType === 'application/x-www-form-urlencoded') return readForm(body, 'urlencoded');
  return {
    definition: [],
    statements: ['    let body = req.body_bytes();', ...(body.required ? MISSING : [])],
    shown: '{"bytes": body.len()}',
    helpers: [],
    types: [],
  };
}

function jsonBody({ type, members, required }: RequestBody): ReadBody {
  const described = structFields(type === 'object' ? members : []);
  const isStruct = described.fields.length > 0;
  const rustType = isStruct ? 'Body' : jsonType(type);
  const definition = isStruct ? [...ABOVE_JSON, ...bodyStruct(described, field)] : [];
  const types = [rustType, ...described.fields.map((one) => field(one.described).type)];
  // A body that is not there reads as null, which only a value of any type could be.
  if (required && rustType === 'JsonValue') {
    const statements = [
      '    if req.body_bytes().is_empty() {',
      ...MISSING.slice(1),
      '    let body: JsonValue = req.json()?;',
    ];
    return { definition, statements, shown: 'body', helpers: [], types };
  }
  const read = required ? rustType : `Option<${rustType}>`;
  return {
    definition,
    statements: [`    let body: ${read} = req.json()?;`],
    shown: 'body',
    helpers: [],
    types,
  };
}

const ABOVE_JSON = ['/// The JSON that clients send.', '#[derive(Deserialize, Serialize)]'];

function field({ required, nullable, type }: Member): FieldSource {
  const rustType = jsonType(type);
  return {
    type: required && !nullable ? rustType : `Option<${rustType}>`,
    // Without it, an Option may be missing as well as null.
    attributes: required && nullable ? ['deserialize_with = "Option::deserialize"'] : [],
  };
}

function jsonType(type: ValueType): string {
  switch (type) {
    case 'string':
      return 'String';
    case 'integer':
      return 'i64';
    case 'number':
      return 'f64';
    case 'boolean':
      return 'bool';
    case 'array':
      return 'Vec<JsonValue>';
    case 'object':
      return 'HashMap<String, JsonValue>';
    case 'any':
      return 'JsonValue';
  }
}
