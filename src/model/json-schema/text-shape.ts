/** What a text has to be read as, by the schema of its value: numbers, booleans, lists and objects. */

import type { PlacedSchema } from './compile-schemas.js';
import type { CompiledKeywords, SchemaIndex } from './compiled.js';
import { SchemaProblem } from './schema-problem.js';

/** How a value is read from text. */
export interface TextShape {
  readonly schema: SchemaIndex;
  /** Empty: of any type. */
  readonly types: readonly string[];
  readonly items?: TextShape;
  readonly members?: Readonly<Record<string, TextShape>>;
  /** Of members that have no name in the schema. */
  readonly others?: TextShape;
}

/** Schemas that are looked at for all values of a policy together. */
const MAX_VISITS = 200_000;

/** Finds shapes. @throws SchemaProblem when there is too much to look at */
export class TextShapes {
  readonly #schemas: readonly PlacedSchema[];
  #visits = 0;

  constructor(schemas: readonly PlacedSchema[]) {
    this.#schemas = schemas;
  }

  /** Of an object's members only their lists are found: texts have no deeper values. */
  of(schema: SchemaIndex, isMember = false): TextShape {
    const parts = this.#partsOf(schema);
    const types = [...new Set(parts.flatMap(typesOf))];
    const items = types.includes('array') ? parts.find((part) => part.items !== undefined)?.items : undefined;
    const shape = { schema, types, ...(items !== undefined && { items: this.#plain(items) }) };
    if (isMember || !types.includes('object')) return shape;
    const members = new Map(parts.flatMap(({ properties }) => Object.entries(properties ?? {})));
    const others = parts.find((part) => part.additionalProperties !== undefined)?.additionalProperties;
    return {
      ...shape,
      ...(members.size > 0 && {
        members: Object.fromEntries([...members].map(([name, index]) => [name, this.of(index, true)])),
      }),
      ...(others !== undefined && { others: this.of(others, true) }),
    };
  }

  #plain(schema: SchemaIndex): TextShape {
    return { schema, types: [...new Set(this.#partsOf(schema).flatMap(typesOf))] };
  }

  /** The schemas that together say what a value is. */
  #partsOf(root: SchemaIndex): CompiledKeywords[] {
    const parts: CompiledKeywords[] = [];
    const seen = new Set<SchemaIndex>();
    const pending = [root];
    for (let index = pending.pop(); index !== undefined; index = pending.pop()) {
      const schema = this.#schemas[index]?.value;
      if (seen.has(index) || typeof schema !== 'object') continue;
      seen.add(index);
      parts.push(schema);
      this.#visits++;
      if (this.#visits > MAX_VISITS)
        throw new SchemaProblem(
          this.#schemas[root]?.place ?? [],
          'has too many members and alternatives for a text',
        );
      const { $ref, allOf = [], anyOf = [], oneOf = [], then, else: otherwise } = schema;
      for (const next of [$ref, ...allOf, ...anyOf, ...oneOf, then, otherwise])
        if (next !== undefined) pending.push(next);
    }
    return parts;
  }
}

function typesOf(schema: CompiledKeywords): readonly string[] {
  const { type, properties, items, enum: values = schema.const } = schema;
  if (type) return type;
  if (properties) return ['object'];
  if (items !== undefined) return ['array'];
  return (values ?? []).map((value) =>
    value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value,
  );
}
