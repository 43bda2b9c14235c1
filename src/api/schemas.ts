/** Schemas shared by several resources. */
import { type Static, type TProperties, type TSchema, Type } from '@sinclair/typebox';

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
export const Timestamp = Type.String({ format: 'date-time', description: 'ISO 8601, UTC' });

/** The path parameter of most routes. */
export const IdParams = Type.Object({ id: Id });

/** The "deletion result" of the contract. */
export const Deleted = Type.Object({ id: Id, deleted: Type.Literal(true) }, { title: 'Deleted' });

/** One of several strings, as an `enum` instead of `anyOf`: validation messages list the values. */
export function oneOf<const T extends readonly string[]>(values: T, options: { description?: string } = {}) {
  return Type.Unsafe<T[number]>({ type: 'string', enum: values, ...options });
}
