/** The part of a generated handler that takes the body apart. */
import type { Member, RequestBody, ValueType } from '../openapi/document.js';
import { RustNames } from './rust-names.js';
import { stringLiteral } from './rust-text.js';

/** A body in a handler. */
export interface ReadBody {
  /** Source of the type that it is read as; empty when there is one already. */
  readonly definition: readonly string[];
  /** Lines that define `body`, or `form`, and check it. */
  readonly statements: readonly string[];
  /** What the answer shows of it: an expression. */
  readonly shown: string;
}

/** More fields, or longer names, make no sense in a source that a person goes on with. */
const MAX_MEMBERS = 200;
const MAX_NAME_LENGTH = 256;

const MISSING = [
  '    if body.is_empty() {',
  '        return Err(HandlerError::BadRequest("Missing required body".into()));',
  '    }',
];

/** How a handler reads the body of this media type: JSON as its type, a form as a form, all else as bytes. */
export function readBody(body: RequestBody): ReadBody {
  const mediaType = body.mediaType.split(';')[0]?.trim().toLowerCase() ?? '';
  if (mediaType === 'application/json' || mediaType.endsWith('+json')) return jsonBody(body);
  if (mediaType === 'multipart/form-data') return form(body);
  return {
    definition: [],
    statements: ['    let body = req.body_bytes();', ...(body.required ? MISSING : [])],
    shown: '{"bytes": body.len()}',
  };
}

function form({ required }: RequestBody): ReadBody {
  const statement = required
    ? '    let form = req.multipart()?;'
    : '    let form = req.is_multipart().then(|| req.multipart()).transpose()?;';
  const shown = required ? 'form.fields' : 'form.map(|form| form.fields)';
  return { definition: [], statements: [statement], shown };
}

function jsonBody({ type, members, required }: RequestBody): ReadBody {
  const fields = type === 'object' ? knownFields(members) : [];
  const rustType = fields.length > 0 ? 'Body' : jsonType(type);
  const definition = fields.length > 0 ? struct(fields, members.length - fields.length) : [];
  // A body that is not there reads as null, which only a value of any type could be.
  if (required && rustType === 'JsonValue') {
    const statements = [
      '    if req.body_bytes().is_empty() {',
      ...MISSING.slice(1),
      '    let body: JsonValue = req.json()?;',
    ];
    return { definition, statements, shown: 'body' };
  }
  const read = required ? rustType : `Option<${rustType}>`;
  return { definition, statements: [`    let body: ${read} = req.json()?;`], shown: 'body' };
}

function knownFields(members: readonly Member[]): Member[] {
  const byName = new Map(members.map((member) => [member.name, member]));
  return [...byName.values()].filter(({ name }) => name.length <= MAX_NAME_LENGTH).slice(0, MAX_MEMBERS);
}

function struct(fields: readonly Member[], leftOut: number): string[] {
  const names = new RustNames('field');
  return [
    '/// The JSON that clients send.',
    '#[derive(Deserialize, Serialize)]',
    'struct Body {',
    ...fields.flatMap((member) => field(member, names)),
    ...(leftOut > 0 ? [`    // Left out: ${leftOut} more.`] : []),
    '}',
  ];
}

function field({ name, required, nullable, type }: Member, names: RustNames): string[] {
  const identifier = names.give(name);
  const attributes = [
    ...(identifier === name ? [] : [`rename = ${stringLiteral(name)}`]),
    // Without it, an Option may be missing as well as null.
    ...(required && nullable ? ['deserialize_with = "Option::deserialize"'] : []),
  ];
  const rustType = jsonType(type);
  return [
    ...(attributes.length > 0 ? [`    #[serde(${attributes.join(', ')})]`] : []),
    `    ${identifier}: ${required && !nullable ? rustType : `Option<${rustType}>`},`,
  ];
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
