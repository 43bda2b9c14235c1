/** What a schema says of a value's type: as much as a generated handler tells apart. */
import type { Member, ValueType } from './document.js';
import { entriesOf, isObject, itemsOf, type JsonObject, own, specError } from './json.js';
import type { References } from './references.js';

interface Kind {
  readonly type: ValueType;
  readonly nullable: boolean;
}

const ANY: Kind = { type: 'any', nullable: false };
const TYPES: readonly string[] = ['string', 'integer', 'number', 'boolean', 'array', 'object'];

/** Schemas and members looked at. The largest public documents need some ten thousand. */
const MAX_STEPS = 2_000_000;

/** Reads schemas. Each is read once, so that those that refer to each other in all ways take no longer than others. */
export class Schemas {
  private readonly kinds = new Map<JsonObject, Kind>();
  private readonly members = new Map<JsonObject, readonly Member[]>();
  private readonly properties = new Map<JsonObject, ReadonlyMap<string, unknown>>();
  private steps = 0;

  /** Servers send these; clients do not. */
  private readonly isReadOnly = this.inherited((schema) => own(schema, 'readOnly') === true || undefined);
  private readonly itemsIn = this.inherited((schema) => own(schema, 'items'));
  private readonly saysBinary = this.inherited((schema) => saysBinary(schema) || undefined);
  private readonly hasBinaryAlternatives = this.inherited((schema) => {
    const all = [...itemsOf(own(schema, 'oneOf')), ...itemsOf(own(schema, 'anyOf'))];
    const alternatives = all.filter((one) => !isNull(one));
    return alternatives.length > 0 ? alternatives.every((one) => this.saysBinary(one) === true) : undefined;
  });

  constructor(private readonly references: References) {}

  /** The type of what a schema describes. */
  typeOf(schema: unknown): ValueType {
    return this.kindOf(schema).type;
  }

  /** The type of the items of an array; `any` for what is none. */
  itemTypeOf(schema: unknown): ValueType {
    return this.typeOf(this.itemsIn(schema));
  }

  /** The members of an object that clients send, in the order of the document. */
  membersOf(schema: unknown): readonly Member[] {
    if (!isObject(schema)) return [];
    const members = this.members.get(schema) ?? this.findMembers(schema);
    this.members.set(schema, members);
    return members;
  }

  /** The schemas of an object's members, by name; of several, the last. */
  propertiesOf(schema: unknown): ReadonlyMap<string, unknown> {
    if (!isObject(schema)) return new Map();
    const find = () => new Map(this.partsOf(schema).flatMap((part) => entriesOf(own(part, 'properties'))));
    const properties = this.properties.get(schema) ?? find();
    this.properties.set(schema, properties);
    return properties;
  }

  /** Whether a member of a form is a file, or a list of files. */
  isBinary(schema: unknown): boolean {
    return [schema, this.itemsIn(schema)].some(
      (one) => this.saysBinary(one) === true || this.hasBinaryAlternatives(one) === true,
    );
  }

  private kindOf(schema: unknown): Kind {
    if (!isObject(schema)) return ANY;
    const known = this.kinds.get(schema);
    if (known) return known;
    // What a schema that leads back to itself finds on its way.
    this.kinds.set(schema, ANY);
    const kind = this.findKind(schema);
    this.kinds.set(schema, kind);
    return kind;
  }

  private findKind(schema: JsonObject): Kind {
    const kinds = [
      ownKind(schema),
      ...this.basesOf(schema).map((base) => this.kindOf(base)),
      this.kindOfAlternatives(itemsOf(own(schema, 'oneOf'))),
      this.kindOfAlternatives(itemsOf(own(schema, 'anyOf'))),
    ].filter(({ type, nullable }) => type !== 'any' || nullable);
    const types = new Set(kinds.map(({ type }) => type).filter((type) => type !== 'any'));
    const [type = 'any'] = types;
    return { type: types.size > 1 ? 'any' : type, nullable: kinds.some(({ nullable }) => nullable) };
  }

  /** What all alternatives have in common. */
  private kindOfAlternatives(alternatives: readonly unknown[]): Kind {
    const kinds = alternatives.filter((one) => !isNull(one)).map((one) => this.kindOf(one));
    const [first] = kinds;
    const isSame = kinds.every(({ type }) => type === first?.type);
    return {
      type: first && isSame ? first.type : 'any',
      nullable: alternatives.some(isNull) || kinds.some(({ nullable }) => nullable),
    };
  }

  private findMembers(schema: JsonObject): readonly Member[] {
    const parts = this.partsOf(schema);
    // What one part describes another may require.
    const required = new Set(parts.flatMap((part) => itemsOf(own(part, 'required'))));
    const members = new Map<string, Member>();
    const readOnly = new Set<string>();
    for (const [name, property] of parts.flatMap((part) => entriesOf(own(part, 'properties')))) {
      this.count();
      if (this.isReadOnly(property) === true) readOnly.add(name);
      const kind = this.kindOf(property);
      const earlier = members.get(name);
      members.set(name, {
        name,
        required: required.has(name),
        ...(earlier && kind.type === 'any' ? { type: earlier.type, nullable: earlier.nullable } : kind),
      });
    }
    return [...members.values()].filter(({ name }) => !readOnly.has(name));
  }

  /** What the first of a schema's bases says, or else the schema itself. */
  private inherited<T>(ask: (schema: JsonObject) => T | undefined): (schema: unknown) => T | undefined {
    const known = new Map<JsonObject, T | undefined>();
    const find = (schema: unknown): T | undefined => {
      if (!isObject(schema)) return undefined;
      if (known.has(schema)) return known.get(schema);
      // What a schema that leads back to itself finds on its way.
      known.set(schema, undefined);
      let found: T | undefined;
      for (const base of this.basesOf(schema)) found ??= find(base);
      found ??= ask(schema);
      known.set(schema, found);
      return found;
    };
    return find;
  }

  /** The schemas that a schema builds upon. */
  private basesOf(schema: JsonObject): readonly unknown[] {
    const target = own(schema, '$ref') === undefined ? [] : [this.references.resolve(schema, 'a schema')];
    return [...target, ...itemsOf(own(schema, 'allOf'))];
  }

  /** A schema and all it builds upon, which comes first. */
  private partsOf(schema: unknown): readonly JsonObject[] {
    const seen = new Set<unknown>();
    const parts: JsonObject[] = [];
    const add = (part: unknown) => {
      if (!isObject(part) || seen.has(part)) return;
      seen.add(part);
      this.count();
      for (const base of this.basesOf(part)) add(base);
      parts.push(part);
    };
    add(schema);
    return parts;
  }

  private count(): void {
    this.steps++;
    if (this.steps > MAX_STEPS) {
      throw specError('/components/schemas', 'build upon each other in too many steps');
    }
  }
}

function isNull(schema: unknown): boolean {
  return isObject(schema) && own(schema, 'type') === 'null';
}

/** OpenAPI 3.0 has a format for it, 3.1 the media type of a string that is not encoded. */
function saysBinary(schema: JsonObject): boolean {
  const mediaType = own(schema, 'contentMediaType');
  if (own(schema, 'format') === 'binary') return true;
  return (
    typeof mediaType === 'string' &&
    !/\bjson\b/i.test(mediaType) &&
    own(schema, 'contentEncoding') === undefined
  );
}

/** What the keywords of a schema itself say. */
function ownKind(schema: JsonObject): Kind {
  const type = own(schema, 'type');
  const types = typeof type === 'string' ? [type] : itemsOf(type);
  const nullable = types.includes('null') || own(schema, 'nullable') === true;
  const known = types.filter((name): name is ValueType => TYPES.includes(String(name)));
  if (known.length === 0) return { type: impliedType(schema), nullable };
  const [first = 'any'] = known;
  if (known.length === 1) return { type: first, nullable };
  const isNumeric = known.every((name) => name === 'integer' || name === 'number');
  return { type: isNumeric ? 'number' : 'any', nullable };
}

/** Many documents leave `type` out where other keywords leave no doubt about what is meant. */
function impliedType(schema: JsonObject): ValueType {
  if (own(schema, 'type') !== undefined) return 'any';
  if (isObject(own(schema, 'properties'))) return 'object';
  if (own(schema, 'items') !== undefined) return 'array';
  const values = itemsOf(own(schema, 'enum'));
  return values.length > 0 && values.every((value) => typeof value === 'string') ? 'string' : 'any';
}
