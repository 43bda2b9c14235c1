/** How large and how deep a value may be, before anything goes into its depth. */
import { SchemaProblem } from './schema-problem.js';

const MAX_DEPTH = 100;
const MAX_VALUES = 20_000;
const MAX_CHARACTERS = 256 * 1024;

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
      for (const [key, member] of Object.entries(value)) {
        characters += Array.isArray(value) ? 0 : key.length;
        pending.push({ value: member, place: [...place, key] });
      }
    }
    if (values + pending.length > MAX_VALUES)
      throw new SchemaProblem(root, `has more than ${MAX_VALUES} values`);
    if (characters > MAX_CHARACTERS)
      throw new SchemaProblem(root, `has more than ${MAX_CHARACTERS} characters`);
  }
}
