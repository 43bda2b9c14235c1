/** Schemas shared by several resources. */
import { type Static, type TProperties, type TSchema, Type } from '@sinclair/typebox';
import { DEPENDENCIES_SCHEMA, type Dependencies } from '../../model/crates.js';
import type { Policies } from '../../model/policies/policies.js';
import { POLICIES_SCHEMA } from '../../model/policies/schema.js';
import { EDITIONS, type FileContents } from '../../model/source-files.js';

/** A value or null, as a list of types instead of `anyOf`, for short validation messages. */
export function nullable<T extends TSchema>(schema: T) {
  const { type, enum: values } = schema as { readonly type?: unknown; readonly enum?: readonly unknown[] };
  return Type.Unsafe<Static<T> | null>({
    ...schema,
    type: [type, 'null'],
    ...(values && { enum: [...values, null] }),
  });
}

/** Makes members optional. */
export function optional<T extends TProperties>(members: T) {
  return Type.Partial(Type.Object(members)).properties;
}

export const Id = Type.String({ format: 'uuid' });
export const Name = Type.String({ format: 'line', maxLength: 255, description: 'Display name' });
export const Description = nullable(Type.String({ format: 'text', maxLength: 65_536 }));
export const Enabled = Type.Boolean({ default: true });
/** The domains that something is for, by their hosts. */
export const Hosts = Type.Array(Type.String({ format: 'hostname' }), {
  maxItems: 1_000,
  description: 'Hosts; none: all',
});
/** The name of a stack of files. */
export const StackName = Type.String({
  pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$',
  description: 'Letters, digits, ".", "_" and "-"; at most 63',
});
/** The stack of a new object; views show it. */
export const Owner = nullable(
  Type.String({
    ...StackName,
    description: 'The stack of files that it belongs to (docs/APPLY.md); null: none',
  }),
);
export const Timestamp = Type.String({ format: 'date-time', description: 'ISO 8601, UTC' });

/** The source of a handler. */
export const Code = nullable(Type.String({ format: 'text', description: 'Handler source code (Rust)' }));
/** The edition of Rust of a source, as a view has it; the members that set it may be null. */
export const EditionName = oneOf(EDITIONS, {
  description: 'The edition of Rust that the code is written in; `2021` unless given',
});
/** The path of the code among the files of a source. */
export const Entry = Type.String({
  format: 'entry-path',
  description:
    'The path of the code among the files; `handler.rs` unless given. Diagnostics and panics name it so',
});
/** The content of a file. */
export const FileContentSchema = {
  type: ['string', 'object'],
  format: 'text',
  description: 'Its text, or its bytes',
  properties: { base64: { type: 'string', format: 'base64' } },
  required: ['base64'],
  additionalProperties: false,
};
/** The Cargo.lock of a source. */
export const Lock = Type.String({
  format: 'cargo-lock',
  description:
    'The text of a Cargo.lock, to which the crates are held; without one, they stay what they were in the newest version',
});
/** Which crates are resolved anew. */
export const Update = Type.Unsafe<boolean | readonly string[]>({
  type: ['boolean', 'array'],
  items: { type: 'string', format: 'crate-name' },
  minItems: 1,
  maxItems: 200,
  description: 'Whether crates are resolved anew, or which: as `cargo update` does',
});
/** The files of a source beside its code, with their contents. */
export const SourceFiles = Type.Unsafe<FileContents>({
  type: 'object',
  description: 'Files beside the code, by their paths: for `mod`, `include_str!` and their like',
  propertyNames: { type: 'string', format: 'file-path' },
  additionalProperties: FileContentSchema,
});
/** A file in lists, without its content. */
export const FileDigest = Type.Object(
  {
    digest: Type.String({ description: 'sha256, in hex' }),
    size: Type.Integer({ description: 'Bytes' }),
  },
  { title: 'FileDigest' },
);
/** The files of a source in lists. */
export const FileDigests = Type.Record(Type.String(), FileDigest, {
  description: 'Files beside the code, by their paths',
});
export const DraftDependencies = Type.Unsafe<Dependencies | null>({
  ...DEPENDENCIES_SCHEMA,
  type: ['object', 'null'],
});

/** The policies of a domain, a collection or an endpoint. */
export const PoliciesField = Type.Unsafe<Policies | null>({ ...POLICIES_SCHEMA, type: ['object', 'null'] });

/** A version that serves, and its share of the requests. */
export const Target = Type.Object(
  {
    version: Type.Integer({ minimum: 1, maximum: 2_147_483_647 }),
    percent: Type.Integer({ minimum: 1, maximum: 100 }),
  },
  { title: 'Target' },
);

const TokenName = Type.String({ pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$", maxLength: 128 });

/** What tells callers apart that keep their version while two share the requests. */
export const Sticky = Type.Unsafe<{ readonly header: string } | { readonly cookie: string }>(
  Type.Object(
    { header: Type.Optional(TokenName), cookie: Type.Optional(TokenName) },
    {
      title: 'Sticky',
      description: 'The name of a header or of a cookie: callers with the same value keep their version',
      minProperties: 1,
      maxProperties: 1,
      additionalProperties: false,
    },
  ),
);

/** The path parameter of most routes. */
export const IdParams = Type.Object({ id: Id });

/** The "deletion result" of the contract. */
export const Deleted = Type.Object({ id: Id, deleted: Type.Literal(true) }, { title: 'Deleted' });

/** A flag in a query. */
export const Flag = (description: string) =>
  Type.Optional(oneOf(['true', '1', 'false', '0'], { description }));

/** Whether a flag of a query is set. */
export function isSet(flag: 'true' | '1' | 'false' | '0' | undefined): boolean {
  return flag === 'true' || flag === '1';
}

/** One of several strings, as an `enum` instead of `anyOf`: validation messages list the values. */
export function oneOf<const T extends readonly string[]>(values: T, options: { description?: string } = {}) {
  return Type.Unsafe<T[number]>({ type: 'string', enum: values, ...options });
}
