/** The struct that a generated handler parses a body into. */
import { RustNames } from './rust-names.js';
import { stringLiteral } from './rust-text.js';

/** Generated source has to stay editable by hand: further fields, and those with longer names, are omitted. */
const MAX_FIELDS = 200;
const MAX_NAME_LENGTH = 256;

/** The fields of a struct. */
export interface StructFields<Described> {
  /** Each with its Rust identifier, which is unique. */
  readonly fields: readonly { readonly described: Described; readonly identifier: string }[];
  readonly omitted: number;
}

/** Assigns identifiers to the fields of a struct, up to the limits above. */
export function structFields<Described extends { readonly name: string }>(
  all: readonly Described[],
): StructFields<Described> {
  const names = new RustNames('field');
  const byName = new Map(all.map((one) => [one.name, one]));
  const fields = [...byName.values()]
    .filter(({ name }) => name.length <= MAX_NAME_LENGTH)
    .slice(0, MAX_FIELDS)
    .map((described) => ({ described, identifier: names.unique(described.name) }));
  return { fields, omitted: all.length - fields.length };
}

/** The source of a field, without its name. */
export interface FieldSource {
  readonly type: string;
  /** Serde attributes. */
  readonly attributes?: readonly string[];
  /** Comment above the field. */
  readonly note?: string;
}

/** The source of `struct Body`, without its doc comment and derives. */
export function bodyStruct<Described extends { readonly name: string }>(
  { fields, omitted }: StructFields<Described>,
  sourceOf: (described: Described) => FieldSource,
): string[] {
  return [
    'struct Body {',
    ...fields.flatMap(({ described, identifier }) => field(described.name, identifier, sourceOf(described))),
    ...(omitted > 0 ? [`    // Omitted: ${omitted} more fields.`] : []),
    '}',
  ];
}

function field(name: string, identifier: string, { type, attributes = [], note }: FieldSource): string[] {
  const all = [...(identifier === name ? [] : [`rename = ${stringLiteral(name)}`]), ...attributes];
  return [
    ...(note === undefined ? [] : [`    // ${note}`]),
    ...(all.length > 0 ? [`    #[serde(${all.join(', ')})]`] : []),
    `    ${identifier}: ${type},`,
  ];
}
