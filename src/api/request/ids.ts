/** Ids as they are stored. */
import type { TSchema } from '@sinclair/typebox';

interface Schema {
  readonly format?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
}

/**
 * Writes the ids of a valid input in lower case, as they are stored. Digits of UUIDs may be written in any case, and
 * the database takes them in any; what compares texts, such as a search of the audit, has to find them all the same.
 * @param members changed in place
 */
export function lowerIds(schema: TSchema, members: Record<string, unknown>): void {
  for (const [name, member] of Object.entries((schema as Schema).properties ?? {})) {
    const value = members[name];
    if (member.format === 'uuid' && typeof value === 'string') members[name] = value.toLowerCase();
    else if (member.properties && typeof value === 'object' && value !== null)
      lowerIds(member as TSchema, value as Record<string, unknown>);
  }
}
