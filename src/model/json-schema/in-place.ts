/** Schemas that apply others to the same value: a cycle of them would not end, and a long chain goes too deep. */

import type { Keywords } from '../../contracts/front-validate.js';
import type { PlacedSchema } from './compile-schemas.js';
import { SchemaProblem } from './schema-problem.js';

const MAX_CHAIN = 50;

/** @throws SchemaProblem naming a schema of the cycle or the chain */
export function requireEnd(schemas: readonly PlacedSchema[]): void {
  /** The longest chain from each schema on; 0 while it is being found. */
  const lengths = new Map<number, number>();
  for (let root = 0; root < schemas.length; root++) {
    const path: { readonly at: number; readonly rest: number[]; longest: number }[] = [];
    const enter = (at: number) => {
      lengths.set(at, 0);
      const { value } = schemas[at] as PlacedSchema;
      path.push({ at, rest: typeof value === 'boolean' ? [] : appliedInPlace(value), longest: 0 });
    };
    if (!lengths.has(root)) enter(root);
    for (let top = path.at(-1); top; top = path.at(-1)) {
      const next = top.rest.pop();
      if (next === undefined) {
        lengths.set(top.at, top.longest + 1);
        path.pop();
        const below = path.at(-1);
        if (below) below.longest = Math.max(below.longest, top.longest + 1);
        if (top.longest >= MAX_CHAIN)
          throw new SchemaProblem(
            schemas[top.at]?.place ?? [],
            `applies a chain of more than ${MAX_CHAIN} schemas to one value`,
          );
        continue;
      }
      const known = lengths.get(next);
      if (known === undefined) enter(next);
      else if (known === 0)
        throw new SchemaProblem(
          schemas[next]?.place ?? [],
          'applies itself to the same value without end, through its references',
        );
      else top.longest = Math.max(top.longest, known);
    }
  }
}

/** The schemas that one applies to the value that it is itself applied to. */
export function appliedInPlace(schema: Keywords): number[] {
  const { $ref, allOf = [], anyOf = [], oneOf = [], not, if: condition, dependentSchemas = {} } = schema;
  return [$ref, ...allOf, ...anyOf, ...oneOf, not, condition, schema.then, schema.else]
    .filter((index) => index !== undefined)
    .concat(Object.values(dependentSchemas));
}
