/**
 * Makes of JSON Schemas a list that the front evaluates: references are places in it, and everything that cannot be
 * enforced, or would not end, is refused with its place. `in-place.ts` finds what would not end.
 */
import type { CompiledPattern, CompiledSchema, Index, Keywords } from '../../contracts/front-validate.js';
import { isObject, type JsonObject } from '../../util/json-object.js';
import { requireEnd } from './in-place.js';
import {
  COUNT_KEYWORDS,
  DIALECT,
  HOLDERS,
  LIST_KEYWORDS,
  NUMBER_KEYWORDS,
  REFUSED,
  REFUSED_FORMATS,
  SCHEMA_FORMATS,
  SCHEMA_KEYWORDS,
  TYPES,
} from './keywords.js';
import { compilePattern, PatternError } from './patterns.js';
import { SchemaReferences } from './references.js';
import { quoted, type SchemaPath, SchemaProblem } from './schema-problem.js';
import { MAX_REPEATED_BYTES } from './size.js';

/** Most weight that all patterns may have together, see `patterns.ts`. */
const MAX_PATTERN_WEIGHT = 50_000;
/** What the smallest counts: each is built when the first request comes, which takes its time. */
const MIN_PATTERN_WEIGHT = 100;
/** Most values of an enum, which are compared one after the other. */
const MAX_ENUM = 5_000;

type Writable = { -readonly [Key in keyof Keywords]: Keywords[Key] };

/** A schema and where it stands. */
export interface PlacedSchema {
  readonly value: CompiledSchema;
  readonly place: SchemaPath;
}

export class SchemaCompiler {
  readonly #schemas: { value: CompiledSchema; readonly place: SchemaPath }[] = [];
  readonly #references = new SchemaReferences();
  readonly #patterns = new Map<string, CompiledPattern>();
  #weight = 0;
  /** Bytes of the translated patterns of all schemas. */
  #patternBytes = 0;

  /**
   * Adds a schema, and those within it.
   * @param component its name among those that `#/components/schemas/` leads to
   * @throws SchemaProblem
   */
  add(schema: unknown, place: SchemaPath, component?: string): Index {
    return this.#visit(schema, place, this.#references.root(place, component));
  }

  /** All schemas, after the last one was added. @throws SchemaProblem */
  finish(): readonly PlacedSchema[] {
    for (const { from, target, place, base } of this.#references.uses) {
      const schema = this.#schemas[from]?.value;
      const index = this.#references.resolve(target, base, place);
      if (typeof schema === 'object') (schema as Writable).$ref = index;
    }
    requireEnd(this.#schemas);
    return this.#schemas;
  }

  #visit(schema: unknown, place: SchemaPath, outer: string): Index {
    const index = this.#schemas.length;
    if (typeof schema === 'boolean') {
      this.#schemas.push({ value: schema, place });
      this.#references.add(index, place, outer);
      return index;
    }
    if (!isObject(schema)) throw new SchemaProblem(place, 'must be a schema: an object, true or false');
    const compiled: Writable = {};
    this.#schemas.push({ value: compiled, place });
    const base = this.#references.add(index, place, outer, schema);
    for (const [keyword, value] of Object.entries(schema)) {
      const at = [...place, keyword];
      const advice = Object.hasOwn(REFUSED, keyword) ? REFUSED[keyword] : undefined;
      if (advice !== undefined) throw new SchemaProblem(at, advice);
      if (!this.#subschemas(compiled, keyword, value, at, base)) this.#keyword(compiled, keyword, value, at);
    }
    if (schema['$ref'] !== undefined) {
      const target = text(schema['$ref'], [...place, '$ref']);
      this.#references.uses.push({ from: index, target, place: [...place, '$ref'], base });
    }
    if (Array.isArray(schema['items']))
      throw new SchemaProblem([...place, 'items'], 'is a list, as in older drafts; use prefixItems');
    return index;
  }

  /** Whether the keyword has schemas in it. */
  #subschemas(compiled: Writable, keyword: string, value: unknown, at: SchemaPath, base: string): boolean {
    const visit = (one: unknown, ...keys: string[]) => this.#visit(one, [...at, ...keys], base);
    const entries = () => Object.entries(object(value, at));
    if (isOneOf(SCHEMA_KEYWORDS, keyword)) {
      if (Array.isArray(value)) return keyword === 'items';
      compiled[keyword] = visit(value);
    } else if (isOneOf(LIST_KEYWORDS, keyword)) {
      const list = listOf(value, at);
      if (list.length === 0) throw new SchemaProblem(at, 'must have at least one schema');
      compiled[keyword] = list.map((one, index) => visit(one, String(index)));
    } else if (isOneOf(HOLDERS, keyword)) {
      for (const [name, one] of entries()) visit(one, name);
    } else if (keyword === 'patternProperties') {
      compiled.patternProperties = entries().map(
        ([pattern, one]) => [this.#pattern(pattern, [...at, pattern]), visit(one, pattern)] as const,
      );
    } else if (keyword === 'properties' || keyword === 'dependentSchemas') {
      compiled[keyword] = Object.fromEntries(entries().map(([name, one]) => [name, visit(one, name)]));
    } else {
      return false;
    }
    return true;
  }

  #keyword(compiled: Writable, keyword: string, value: unknown, at: SchemaPath): void {
    if (isOneOf(COUNT_KEYWORDS, keyword)) compiled[keyword] = count(value, at);
    else if (isOneOf(NUMBER_KEYWORDS, keyword)) compiled[keyword] = number(value, at);
    else if (keyword === 'multipleOf') {
      if (number(value, at) <= 0) throw new SchemaProblem(at, 'must be greater than 0');
      compiled.multipleOf = number(value, at);
    } else if (keyword === 'type') compiled.type = types(value, at);
    else if (keyword === 'const') compiled.const = [value];
    else if (keyword === 'enum') {
      compiled.enum = listOf(value, at);
      if (compiled.enum.length > MAX_ENUM) throw new SchemaProblem(at, `has more than ${MAX_ENUM} values`);
    } else if (keyword === 'uniqueItems') {
      if (typeof value !== 'boolean') throw new SchemaProblem(at, 'must be true or false');
      compiled.uniqueItems = value;
    } else if (keyword === 'required') compiled.required = texts(value, at);
    else if (keyword === 'dependentRequired')
      compiled.dependentRequired = Object.fromEntries(
        Object.entries(object(value, at)).map(([name, names]) => [name, texts(names, [...at, name])]),
      );
    else if (keyword === 'pattern') compiled.pattern = this.#pattern(text(value, at), at);
    else if (keyword === 'format') {
      const format = text(value, at);
      if (REFUSED_FORMATS.includes(format)) throw new SchemaProblem(at, `${quoted(format)} is not supported`);
      if (isOneOf(SCHEMA_FORMATS, format)) compiled.format = format;
    } else if (keyword === '$schema' && !DIALECT.test(text(value, at)))
      throw new SchemaProblem(at, 'is another dialect; schemas are those of JSON Schema 2020-12');
  }

  #pattern(source: string, at: SchemaPath): CompiledPattern {
    try {
      const compiled = this.#patterns.get(source) ?? this.#newPattern(source);
      this.#patternBytes += Buffer.byteLength(compiled[0]);
      if (this.#patternBytes > MAX_REPEATED_BYTES)
        throw new PatternError(
          `is one too many: all together have more than ${MAX_REPEATED_BYTES} bytes once they are translated`,
        );
      return compiled;
    } catch (thrown) {
      if (!(thrown instanceof PatternError)) throw thrown;
      throw new SchemaProblem(at, `the pattern ${quoted(source)} ${thrown.message}`);
    }
  }

  #newPattern(source: string): CompiledPattern {
    const { rust, weight } = compilePattern(source);
    this.#weight += Math.max(weight, MIN_PATTERN_WEIGHT);
    if (this.#weight > MAX_PATTERN_WEIGHT)
      throw new PatternError('is one too many: all together are too large');
    const compiled = [rust, source, weight] as const;
    this.#patterns.set(source, compiled);
    return compiled;
  }
}

function isOneOf<T extends string>(all: readonly T[], text: string): text is T {
  return (all as readonly string[]).includes(text);
}

function object(value: unknown, place: SchemaPath): JsonObject {
  if (isObject(value)) return value;
  throw new SchemaProblem(place, 'must be an object');
}

function listOf(value: unknown, place: SchemaPath): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw new SchemaProblem(place, 'must be a list');
}

function text(value: unknown, place: SchemaPath): string {
  if (typeof value === 'string') return value;
  throw new SchemaProblem(place, 'must be a text');
}

function texts(value: unknown, place: SchemaPath): readonly string[] {
  return [...new Set(listOf(value, place).map((one, at) => text(one, [...place, String(at)])))];
}

function number(value: unknown, place: SchemaPath): number {
  if (typeof value === 'number') return value;
  throw new SchemaProblem(
    place,
    typeof value === 'boolean' ? 'must be a number; true and false are of older drafts' : 'must be a number',
  );
}

function count(value: unknown, place: SchemaPath): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
  throw new SchemaProblem(place, 'must be a whole number, 0 or more');
}

function types(value: unknown, place: SchemaPath): readonly string[] {
  const all = typeof value === 'string' ? [value] : texts(value, place);
  const other = all.find((name) => !isOneOf(TYPES, name));
  if (other !== undefined) throw new SchemaProblem(place, `${quoted(other)} is not a type`);
  if (all.length === 0) throw new SchemaProblem(place, 'must have at least one type');
  return all;
}
