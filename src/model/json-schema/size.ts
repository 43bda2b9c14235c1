/** How large and how deep a value may be, before anything goes into its depth. */
import { SchemaProblem } from './schema-problem.js';

const MAX_DEPTH = 100;
const MAX_VALUES = 20_000;
const MAX_CHARACTERS = 256 * 1024;
/**
 * What is compiled has some texts more often, or longer, than the value: the names of members in the shape of each
 * parameter, and patterns as they are translated. Each kind may have so many bytes, four times what all texts of a
 * policy may have: only those that are made for it have more, and would become several hundred times as large.
 */
export const MAX_REPEATED_BYTES = 1024 * 1024;

/**
 * @param root where it stands
 * @throws SchemaProblem when it is too deep or too large, or has a number that is none of JSON
 */
export function requireModest(value: unknown, root: readonly string[] = []): void {
  const pending: { readonly value: unknown; readonly place: readonly string[] }[] = [{ value, place: root }];
  let values = 0;
  let characters = 0;
  for (let one = pending.pop(); one; one = pending.pop()) {
    const { value, place } = one;
    values++;
    if (typeof value === 'string') characters += value.length;
    if (typeof value === 'number' && !Number.isFinite(value))
      throw new SchemaProblem(place, 'is a number too large to be one');
    if (typeof value === 'object' && value !== null) {
      if (place.length - root.length > MAX_DEPTH)
        throw new SchemaProblem(
          place.slice(0, root.length + 8),
          `is nested more than ${MAX_DEPTH} levels deep`,
        );
      // Before each gets a place: there may be millions.
      const members = Array.isArray(value) ? value.length : Object.keys(value).length;
      if (values + pending.length + members > MAX_VALUES)
        throw new SchemaProblem(root, `has more than ${MAX_VALUES} values`);
      for (const [key, member] of Object.entries(value)) {
        characters += Array.isArray(value) ? 0 : key.length;
        pending.push({ value: member, place: [...place, key] });
      }
    }
    if (characters > MAX_CHARACTERS)
      throw new SchemaProblem(root, `has more than ${MAX_CHARACTERS} characters`);
  }
}
