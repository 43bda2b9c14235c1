/** What a text has to be read as, by the schema of its value: numbers, booleans, lists and objects. */

import type { Index, Keywords, Shape } from '../../contracts/front-validate.js';
import type { PlacedSchema } from './compile-schemas.js';
import { SchemaProblem } from './schema-problem.js';
import { MAX_REPEATED_BYTES } from './size.js';

/** One of the schemas that together say what a value is. */
interface Part {
  readonly index: Index;
  readonly keywords: Keywords;
}

/** Schemas that are looked at for all values of a policy together: so long is what the front keeps of it. */
const MAX_VISITS = 20_000;
/** The same limit for policies that were saved by a version that allowed more. */
export const MAX_VISITS_ONCE = 200_000;

/** Finds shapes. @throws SchemaProblem when there is too much to look at */
export class TextShapes {
  /** All schemas. Shapes may need further ones, so they are to be taken after the last shape. */
  readonly schemas: PlacedSchema[];
  /** Schemas that stand for several, by these. */
  readonly #anyOf = new Map<string, Index>();
  #visits = 0;
  /** Bytes of the names of members in all shapes. */
  #nameBytes = 0;

  constructor(
    schemas: readonly PlacedSchema[],
    private readonly maxVisits: number = MAX_VISITS,
  ) {
    this.schemas = [...schemas];
  }

  /** The shape of a schema. Of an object's members only types and lists are found: texts have no deeper values. */
  of(schema: Index, isMember = false): Shape {
    const parts = this.#partsOf(schema);
    const types = typesOfAll(parts);
    const items = types.includes('array')
      ? parts.find(({ keywords }) => keywords.items !== undefined)?.keywords.items
      : undefined;
    const shape = { schema, types, ...(items !== undefined && { items: this.#plain(items) }) };
    if (isMember || !types.includes('object')) return shape;
    const members = new Map<string, Index[]>();
    for (const { keywords } of parts)
      for (const [name, index] of Object.entries(keywords.properties ?? {}))
        members.set(name, [...(members.get(name) ?? []), index]);
    const patterns = parts.flatMap(({ index, keywords: { patternProperties = [] } }) =>
      patternProperties.map(([, one], at) => ({ schema: index, at, shape: this.of(one, true) })),
    );
    const others = parts.flatMap(
      ({ keywords: { additionalProperties, unevaluatedProperties } }) =>
        additionalProperties ?? unevaluatedProperties ?? [],
    );
    const named = [...members].map(([name, all]) => {
      this.#countName(schema, name);
      return [name, this.#ofAny(all)];
    });
    return {
      ...shape,
      ...(named.length > 0 && { members: Object.fromEntries(named) }),
      ...(patterns.length > 0 && { patterns }),
      ...(others.length > 0 && { others: this.#ofAny(others) }),
    };
  }

  /** The shape of a member that several schemas describe: it is read as what fits any of them. */
  #ofAny(all: readonly Index[]): Shape {
    const [first = 0, ...others] = new Set(all);
    if (others.length === 0) return this.of(first, true);
    const anyOf = [first, ...others];
    const key = anyOf.join();
    const known = this.#anyOf.get(key) ?? this.schemas.length;
    if (known === this.schemas.length) this.schemas.push({ value: { anyOf }, place: [] });
    this.#anyOf.set(key, known);
    return this.of(known, true);
  }

  #plain(schema: Index): Shape {
    return { schema, types: typesOfAll(this.#partsOf(schema)) };
  }

  #partsOf(root: Index): readonly Part[] {
    const parts: Part[] = [];
    const seen = new Set<Index>();
    const pending = [root];
    // Also of a schema that is true or false: it becomes a shape.
    this.#count(root);
    for (let index = pending.pop(); index !== undefined; index = pending.pop()) {
      const schema = this.schemas[index]?.value;
      if (seen.has(index) || typeof schema !== 'object') continue;
      seen.add(index);
      parts.push({ index, keywords: schema });
      this.#count(root);
      const { $ref, allOf = [], anyOf = [], oneOf = [], then, else: otherwise } = schema;
      const dependent = Object.values(schema.dependentSchemas ?? {});
      for (const next of [$ref, ...allOf, ...anyOf, ...oneOf, then, otherwise, ...dependent])
        if (next !== undefined) pending.push(next);
    }
    return parts;
  }

  #count(root: Index): void {
    this.#visits++;
    if (this.#visits > this.maxVisits)
      throw this.#problem(root, 'has too many members and alternatives for a text');
  }

  #countName(root: Index, name: string): void {
    this.#nameBytes += Buffer.byteLength(JSON.stringify(name));
    if (this.#nameBytes > MAX_REPEATED_BYTES)
      throw this.#problem(
        root,
        `is one too many: the names of members have more than ${MAX_REPEATED_BYTES} bytes, each counted wherever a text may have it`,
      );
  }

  #problem(root: Index, message: string): SchemaProblem {
    return new SchemaProblem(this.schemas[root]?.place ?? [], message);
  }
}

function typesOfAll(parts: readonly Part[]): readonly string[] {
  return [...new Set(parts.flatMap(({ keywords }) => typesOf(keywords)))];
}

function typesOf(schema: Keywords): readonly string[] {
  const { type, items, enum: values = schema.const } = schema;
  const { properties, patternProperties, additionalProperties, unevaluatedProperties } = schema;
  if (type) return type;
  const ofMembers = [properties, patternProperties, additionalProperties, unevaluatedProperties];
  if (ofMembers.some((one) => one !== undefined)) return ['object'];
  if (items !== undefined) return ['array'];
  return (values ?? []).map((value) =>
    value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value,
  );
}
