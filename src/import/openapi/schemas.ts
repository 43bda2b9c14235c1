/** Derives from schemas what generated handlers need: types, members, files. */

import { isObject, type JsonObject } from '../../util/json-object.js';
import type { AllowedValues, Member, ValueType } from './document.js';
import { documentError, entriesOf, itemsOf, own } from './json.js';
import type { References } from './references.js';

interface Kind {
  readonly type: ValueType;
  readonly nullable: boolean;
}

const ANY: Kind = { type: 'any', nullable: false };
const TYPES: readonly string[] = ['string', 'integer', 'number', 'boolean', 'array', 'object'];

/** Schemas and members visited. The largest public documents need some ten thousand. */
const MAX_VISITS = 2_000_000;

/** Results are memoized by schema: time is linear however schemas reference each other. */
export class Schemas {
  readonly #references: References;
  readonly #kinds = new Map<JsonObject, Kind>();
  readonly #members = new Map<JsonObject, readonly Member[]>();
  readonly #properties = new Map<JsonObject, ReadonlyMap<string, unknown>>();
  readonly #enums = new Map<readonly unknown[], AllowedValues | undefined>();
  #visits = 0;

  /** Clients do not send read-only members. */
  readonly #isReadOnly = this.#inherited((schema) => own(schema, 'readOnly') === true || undefined);
  readonly #itemsIn = this.#inherited((schema) => own(schema, 'items'));
  readonly #enumIn = this.#inherited((schema) => own(schema, 'enum'));
  readonly #isArrayAmongOthers = this.#inherited((schema) => {
    const all = [...itemsOf(own(schema, 'oneOf')), ...itemsOf(own(schema, 'anyOf'))];
    const isArray = itemsOf(own(schema, 'type')).includes('array');
    return isArray || all.some((one) => this.typeOf(one) === 'array') || undefined;
  });
  readonly #declaresBinary = this.#inherited((schema) => declaresBinary(schema) || undefined);
  readonly #hasBinaryAlternatives = this.#inherited((schema) => {
    const all = [...itemsOf(own(schema, 'oneOf')), ...itemsOf(own(schema, 'anyOf'))];
    const alternatives = all.filter((one) => !isNull(one));
    return alternatives.length > 0
      ? alternatives.every((one) => this.#declaresBinary(one) === true)
      : undefined;
  });

  constructor(references: References) {
    this.#references = references;
  }

  /** The type of a schema's values. */
  typeOf(schema: unknown): ValueType {
    return this.#kindOf(schema).type;
  }

  /** The type of the items of an array; `any` for other types. */
  itemTypeOf(schema: unknown): ValueType {
    return this.typeOf(this.#itemsIn(schema));
  }

  /** Whether the values of a schema of any type may be arrays. */
  mayBeArray(schema: unknown): boolean {
    return this.typeOf(schema) === 'array' || this.#isArrayAmongOthers(schema) === true;
  }

  /** The only values that a string or integer, or an item of an array of these, may have; undefined if any. */
  allowedValues(schema: unknown): AllowedValues | undefined {
    const one = this.typeOf(schema) === 'array' ? this.#itemsIn(schema) : schema;
    const values = itemsOf(this.#enumIn(one));
    if (values.length === 0) return undefined;
    if (!this.#enums.has(values)) this.#enums.set(values, enumOf(values));
    const result = this.#enums.get(values);
    return result?.type === this.typeOf(one) ? result : undefined;
  }

  /** The members of an object that clients send, in the order of the document. */
  membersOf(schema: unknown): readonly Member[] {
    if (!isObject(schema)) return [];
    const members = this.#members.get(schema) ?? this.#findMembers(schema);
    this.#members.set(schema, members);
    return members;
  }

  /** The names of these members. Schemas that only reference another one share its result. */
  memberNamesOf(schema: unknown): readonly string[] {
    const seen = new Set<unknown>();
    let described = schema;
    while (isObject(described) && !seen.has(described) && own(described, 'properties') === undefined) {
      seen.add(described);
      const bases = this.#basesOf(described);
      if (bases.length !== 1) break;
      described = bases[0];
    }
    return this.membersOf(described).map(({ name }) => name);
  }

  /** The schemas of an object's members, by name; the last one wins. */
  propertiesOf(schema: unknown): ReadonlyMap<string, unknown> {
    if (!isObject(schema)) return new Map();
    const find = () => new Map(this.#partsOf(schema).flatMap((part) => entriesOf(own(part, 'properties'))));
    const properties = this.#properties.get(schema) ?? find();
    this.#properties.set(schema, properties);
    return properties;
  }

  /** Whether a member of a form is a file, or a list of files. */
  isBinary(schema: unknown): boolean {
    return [schema, this.#itemsIn(schema)].some(
      (one) => this.#declaresBinary(one) === true || this.#hasBinaryAlternatives(one) === true,
    );
  }

  #kindOf(schema: unknown): Kind {
    if (!isObject(schema)) return ANY;
    const known = this.#kinds.get(schema);
    if (known) return known;
    // The result within a cycle of schemas.
    this.#kinds.set(schema, ANY);
    const kind = this.#findKind(schema);
    this.#kinds.set(schema, kind);
    return kind;
  }

  #findKind(schema: JsonObject): Kind {
    const kinds = [
      ownKind(schema),
      ...this.#basesOf(schema).map((base) => this.#kindOf(base)),
      this.#kindOfAlternatives(itemsOf(own(schema, 'oneOf'))),
      this.#kindOfAlternatives(itemsOf(own(schema, 'anyOf'))),
    ].filter(({ type, nullable }) => type !== 'any' || nullable);
    const types = new Set(kinds.map(({ type }) => type).filter((type) => type !== 'any'));
    const [type = 'any'] = types;
    return { type: types.size > 1 ? 'any' : type, nullable: kinds.some(({ nullable }) => nullable) };
  }

  /** The type that all alternatives share. */
  #kindOfAlternatives(alternatives: readonly unknown[]): Kind {
    const kinds = alternatives.filter((one) => !isNull(one)).map((one) => this.#kindOf(one));
    const [first] = kinds;
    const isSame = kinds.every(({ type }) => type === first?.type);
    return {
      type: first && isSame ? first.type : 'any',
      nullable: alternatives.some(isNull) || kinds.some(({ nullable }) => nullable),
    };
  }

  #findMembers(schema: JsonObject): readonly Member[] {
    const parts = this.#partsOf(schema);
    // A member may be described by one part and required by another.
    const required = new Set<unknown>();
    for (const name of parts.flatMap((part) => itemsOf(own(part, 'required')))) {
      this.#countVisit();
      required.add(name);
    }
    const members = new Map<string, Member>();
    const readOnly = new Set<string>();
    for (const [name, property] of parts.flatMap((part) => entriesOf(own(part, 'properties')))) {
      this.#countVisit();
      if (this.#isReadOnly(property) === true) readOnly.add(name);
      const kind = this.#kindOf(property);
      const earlier = members.get(name);
      const allowed = this.#mayHaveNull(property)
        ? undefined
        : (this.allowedValues(property) ?? earlier?.allowed);
      const { type, nullable } = earlier && kind.type === 'any' ? earlier : kind;
      members.set(name, {
        name,
        required: required.has(name),
        type,
        nullable,
        ...(allowed === undefined ? {} : { allowed }),
      });
    }
    return [...members.values()].filter(({ name }) => !readOnly.has(name));
  }

  /** A lookup that returns the value of the first base that has one, else that of the schema itself. */
  #inherited<T>(lookUp: (schema: JsonObject) => T | undefined): (schema: unknown) => T | undefined {
    const known = new Map<JsonObject, T | undefined>();
    const find = (schema: unknown): T | undefined => {
      if (!isObject(schema)) return undefined;
      if (known.has(schema)) return known.get(schema);
      // The result within a cycle of schemas.
      known.set(schema, undefined);
      let result: T | undefined;
      for (const base of this.#basesOf(schema)) result ??= find(base);
      result ??= lookUp(schema);
      known.set(schema, result);
      return result;
    };
    return find;
  }

  /** The schemas that a schema extends: the target of its `$ref`, and its `allOf`. */
  #basesOf(schema: JsonObject): readonly unknown[] {
    const target = own(schema, '$ref') === undefined ? [] : [this.#references.find(schema)];
    return [...target, ...itemsOf(own(schema, 'allOf'))];
  }

  /** A schema and everything that it extends, bases first. */
  #partsOf(schema: unknown): readonly JsonObject[] {
    const seen = new Set<unknown>();
    const parts: JsonObject[] = [];
    const add = (part: unknown) => {
      if (!isObject(part) || seen.has(part)) return;
      seen.add(part);
      this.#countVisit();
      for (const base of this.#basesOf(part)) add(base);
      parts.push(part);
    };
    add(schema);
    return parts;
  }

  /** Whether an item of an array may be null. */
  #mayHaveNull(schema: unknown): boolean {
    return this.typeOf(schema) === 'array' && this.#kindOf(this.#itemsIn(schema)).nullable;
  }

  #countVisit(): void {
    this.#visits++;
    if (this.#visits > MAX_VISITS) {
      throw documentError('/components/schemas', 'reference each other in too many ways');
    }
  }
}

/** An enum without null, if all of it is of one type. */
function enumOf(all: readonly unknown[]): AllowedValues | undefined {
  const values = [...new Set(all)].filter((value) => value !== null);
  if (values.length === 0) return undefined;
  if (values.every((value) => typeof value === 'string')) return { type: 'string', values };
  return values.every(isSafeInteger) ? { type: 'integer', values } : undefined;
}

/** A larger number may have been another one in the document. */
function isSafeInteger(value: unknown): value is number {
  return Number.isSafeInteger(value);
}

function isNull(schema: unknown): boolean {
  return isObject(schema) && own(schema, 'type') === 'null';
}

/** OpenAPI 3.0 has a format for binary strings, 3.1 a media type without an encoding. */
function declaresBinary(schema: JsonObject): boolean {
  const mediaType = own(schema, 'contentMediaType');
  if (own(schema, 'format') === 'binary') return true;
  return (
    typeof mediaType === 'string' &&
    !/\bjson\b/i.test(mediaType) &&
    own(schema, 'contentEncoding') === undefined
  );
}

/** The type according to the schema's own keywords. */
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

/** Many documents omit `type` where other keywords imply it. */
function impliedType(schema: JsonObject): ValueType {
  if (own(schema, 'type') !== undefined) return 'any';
  if (isObject(own(schema, 'properties'))) return 'object';
  if (own(schema, 'items') !== undefined) return 'array';
  const values = itemsOf(own(schema, 'enum'));
  return values.length > 0 && values.every((value) => typeof value === 'string') ? 'string' : 'any';
}
