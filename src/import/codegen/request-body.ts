/** The part of a generated handler that parses the request body. */
import type { Member, RequestBody } from '../openapi/document.js';
import { formBodyCode } from './form-body.js';
import type { RustConstants } from './rust-constants.js';
import { RustEnums } from './rust-enum.js';
import { bodyStruct, type FieldSource, structFields } from './rust-struct.js';
import { jsonType } from './rust-types.js';

/** The code that parses a body. */
export interface BodyCode {
  /** Source of the type that the body is parsed into; empty for types that exist already. */
  readonly definition: readonly string[];
  /** Lines that define and validate `body`, or `form`. */
  readonly statements: readonly string[];
  /** Expression for the body in the 501 answer. */
  readonly received: string;
  /** Rust types that the source uses. */
  readonly types: readonly string[];
}

const REQUIRE_BODY = [
  '    if body.is_empty() {',
  '        return Err(HandlerError::BadRequest("Missing required body".into()));',
  '    }',
];

/** JSON is parsed into its type, a form into its fields; any other media type stays bytes. */
export function requestBodyCode(body: RequestBody, constants: RustConstants): BodyCode {
  const mediaType = body.mediaType.split(';')[0]?.trim().toLowerCase() ?? '';
  if (mediaType === 'application/json' || mediaType.endsWith('+json')) return jsonBodyCode(body, constants);
  if (mediaType === 'multipart/form-data') return formBodyCode(body, 'multipart', constants);
  if (mediaType === 'application/x-www-form-urlencoded') return formBodyCode(body, 'urlencoded', constants);
  return {
    definition: [],
    statements: ['    let body = req.body_bytes();', ...(body.required ? REQUIRE_BODY : [])],
    received: '{"bytes": body.len()}',
    types: [],
  };
}

function jsonBodyCode({ type, members, required }: RequestBody, constants: RustConstants): BodyCode {
  const described = structFields(type === 'object' ? members : []);
  const enums = new RustEnums(constants);
  const fields = new Map(described.fields.map(({ described: member }) => [member, jsonField(member, enums)]));
  const fieldOf = (member: Member) => fields.get(member) ?? { type: 'JsonValue' };
  const isStruct = described.fields.length > 0;
  const rustType = isStruct ? 'Body' : jsonType(type);
  // `req.json()` reads an empty body as null, which JsonValue would accept.
  const requireBody =
    required && rustType === 'JsonValue'
      ? ['    if req.body_bytes().is_empty() {', ...REQUIRE_BODY.slice(1)]
      : [];
  return {
    definition: isStruct
      ? [
          ...JSON_STRUCT_HEADER,
          ...bodyStruct(described, fieldOf),
          ...enums.definitions.flatMap((lines) => ['', ...lines]),
        ]
      : [],
    statements: [
      ...requireBody,
      `    let body: ${required ? rustType : `Option<${rustType}>`} = req.json()?;`,
    ],
    received: 'body',
    types: [rustType, ...described.fields.map((one) => fieldOf(one.described).type)],
  };
}

const JSON_STRUCT_HEADER = ['/// The JSON request body.', '#[derive(Deserialize, Serialize)]'];

function jsonField(member: Member, enums: RustEnums): FieldSource {
  const { required, nullable, type } = member;
  const checked = enums.typeOf(member);
  const rustType = checked === undefined ? jsonType(type) : type === 'array' ? `Vec<${checked}>` : checked;
  return {
    type: required && !nullable ? rustType : `Option<${rustType}>`,
    // By default serde accepts a missing member for an Option, not only null.
    attributes: required && nullable ? ['deserialize_with = "Option::deserialize"'] : [],
  };
}
