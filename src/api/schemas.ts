/** Schemas that several resources share. */
import { type Static, type TSchema, Type } from '@sinclair/typebox';

/** A value or null. A list of types instead of alternatives: the messages about a wrong value stay short. */
export function nullable<T extends TSchema>(schema: T) {
  const { type, enum: values } = schema as { readonly type?: unknown; readonly enum?: readonly unknown[] };
  return Type.Unsafe<Static<T> | null>({
    ...schema,
    type: [type, 'null'],
    ...(values && { enum: [...values, null] }),
  });
}

export const Id = Type.String({ format: 'uuid' });
export const Name = Type.String({ format: 'line', maxLength: 255, description: 'Display name' });
export const Description = nullable(Type.String({ format: 'text', maxLength: 65_536 }));
export const Enabled = Type.Boolean({ default: true });
export const Timestamp = Type.String({ format: 'date-time', description: 'ISO 8601, UTC' });

/** The path parameter of most routes. */
export const IdParams = Type.Object({ id: Id });

/** What a deletion answers where the contract says "deletion result". */
export const Deleted = Type.Object({ id: Id, deleted: Type.Literal(true) }, { title: 'Deleted' });

/** One of some texts. An enumeration instead of alternatives: a message about a wrong value can list them. */
export function oneOf<const T extends readonly string[]>(values: T, options: { description?: string } = {}) {
  return Type.Unsafe<T[number]>({ type: 'string', enum: values, ...options });
}
