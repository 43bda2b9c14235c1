/** The struct that a generated handler reads a body into. */
import { RustNames } from './rust-names.js';
import { stringLiteral } from './rust-text.js';

/** More fields, or longer names, make no sense in a source that a person goes on with. */
const MAX_FIELDS = 200;
const MAX_NAME_LENGTH = 256;

/** The fields of a struct. */
export interface StructFields<Described> {
  /** Each with its name in Rust; no two have the same name. */
  readonly fields: readonly { readonly described: Described; readonly identifier: string }[];
  readonly leftOut: number;
}

/** Names the fields of a struct: as many as make sense. */
export function structFields<Described extends { readonly name: string }>(
  all: readonly Described[],
): StructFields<Described> {
  const names = new RustNames('field');
  const byName = new Map(all.map((one) => [one.name, one]));
  const fields = [...byName.values()]
    .filter(({ name }) => name.length <= MAX_NAME_LENGTH)
    .slice(0, MAX_FIELDS)
    .map((described) => ({ described, identifier: names.give(described.name) }));
  return { fields, leftOut: all.length - fields.length };
}

/** What the source of a field says besides its name. */
export interface FieldSource {
  readonly type: string;
  /** For serde. */
  readonly attributes?: readonly string[];
  /** What its reader should know. */
  readonly remark?: string;
}

/** The source of `struct Body`, without what stands above it. */
export function bodyStruct<Described extends { readonly name: string }>(
  { fields, leftOut }: StructFields<Described>,
  sourceOf: (described: Described) => FieldSource,
): string[] {
  return [
    'struct Body {',
    ...fields.flatMap(({ described, identifier }) => field(described.name, identifier, sourceOf(described))),
    ...(leftOut > 0 ? [`    // Left out: ${leftOut} more.`] : []),
    '}',
  ];
}

function field(name: string, identifier: string, { type, attributes = [], remark }: FieldSource): string[] {
  const all = [...(identifier === name ? [] : [`rename = ${stringLiteral(name)}`]), ...attributes];
  return [
    ...(remark === undefined ? [] : [`    // ${remark}`]),
    ...(all.length > 0 ? [`    #[serde(${all.join(', ')})]`] : []),
    `    ${identifier}: ${type},`,
  ];
}
