/**
 * Schemas of a document as the policy `validate` has them: JSON Schema 2020-12, without what says nothing about values,
 * and with references to schemas that go along.
 */
import {
  LIST_KEYWORDS,
  MAP_KEYWORDS,
  REFUSED,
  REFUSED_FORMATS,
  SCHEMA_KEYWORDS,
} from '../../model/json-schema/keywords.js';
import { COMPONENTS, componentName } from '../../model/policies/component-names.js';
import { isObject, type JsonObject } from '../../util/json-object.js';
import { entriesOf, itemsOf, own, shortened } from './json.js';
import type { ReadOnlyMembers } from './read-only.js';
import { type References, referenceOf } from './references.js';
import type { WidenedSchemas } from './widened-schemas.js';

type ConvertedSchema = boolean | Record<string, unknown>;

const ONE: readonly string[] = SCHEMA_KEYWORDS;
const LISTS: readonly string[] = LIST_KEYWORDS;
const MAPS: readonly string[] = MAP_KEYWORDS;
/** Their values stay as they are. */
const PLAIN = [
  ...['type', 'enum', 'const', 'multipleOf', 'maximum', 'exclusiveMaximum', 'minimum', 'exclusiveMinimum'],
  ...['maxLength', 'minLength', 'pattern', 'format', 'maxItems', 'minItems', 'uniqueItems', 'maxContains'],
  ...['minContains', 'maxProperties', 'minProperties', 'required', 'dependentRequired'],
];
/** Keywords of older documents, which are converted. */
const CONVERTED = ['nullable'];
/** What would change which values fit. */
const SAYING = [...ONE, ...LISTS, ...MAPS, ...PLAIN, ...CONVERTED, 'readOnly'];

export class ConvertedSchemas {
  readonly #references: References;
  readonly #widened: WidenedSchemas;
  readonly #readOnly: ReadOnlyMembers;
  readonly #isOld: boolean;
  readonly #warn: (text: string) => void;
  /** Names of the schemas that references lead to. */
  readonly #names = new Map<unknown, string>();
  readonly #usedNames = new Set<string>();
  readonly #named = new Map<string, ConvertedSchema>();

  /**
   * @param sources `isOld` of a document of OpenAPI 3.0, where `nullable` means something
   * @param warn called for what is left out
   */
  constructor(
    { references, isOld }: { readonly references: References; readonly isOld: boolean },
    widened: WidenedSchemas,
    readOnly: ReadOnlyMembers,
    warn: (text: string) => void,
  ) {
    this.#references = references;
    this.#widened = widened;
    this.#readOnly = readOnly;
    this.#isOld = isOld;
    this.#warn = warn;
  }

  /** The schema of a value; true for one that is not described. */
  of(schema: unknown): ConvertedSchema {
    const converted = schema === undefined ? true : this.#convert(schema);
    return typeof converted === 'object' && Object.keys(converted).length === 0 ? true : converted;
  }

  /** An object where it has lost something. */
  #convert(schema: unknown): ConvertedSchema {
    if (typeof schema === 'boolean') return schema;
    if (!isObject(schema)) {
      const anything = {};
      this.#widened.add(anything, 'schema');
      return anything;
    }
    const converted = this.#keywords(schema);
    const isNullable = own(schema, 'nullable') === true;
    if (isNullable && this.#isOld && referenceOf(schema) === undefined) this.#addNull(schema, converted);
    const withNull = isNullable && !this.#isOld ? this.#orNull(converted) : converted;
    return Object.keys(withNull).length > 0 || this.#widened.has(withNull) ? withNull : true;
  }

  /** OpenAPI 3.0.3: `nullable` adds null to the type that is beside it, and to nothing else. */
  #addNull(schema: JsonObject, converted: Record<string, unknown>): void {
    const { type, enum: values } = converted;
    if (typeof type === 'string' && type !== 'null') converted['type'] = [type, 'null'];
    const hasNull = !Array.isArray(values) || values.includes(null);
    if (!hasNull) this.#warn('nullable of a schema does not allow null: its enum has no null');
    const isBare = own(schema, 'type') === undefined && values === undefined;
    if (isBare && Object.keys(converted).length > 0)
      this.#warn(
        'nullable of a schema does not allow null: it has no type beside it, as OpenAPI 3.0.3 demands',
      );
  }

  /** Later versions do not know `nullable`; null is allowed all the same. */
  #orNull(schema: Record<string, unknown>): Record<string, unknown> {
    const withNull = orNull(schema);
    this.#widened.copy(schema, withNull);
    this.#readOnly.copy(schema, withNull);
    this.#widened.add(withNull, 'type');
    return withNull;
  }

  /** All schemas that references in a value lead to, by their names, and those that these lead to. */
  named(value: unknown): Record<string, ConvertedSchema> {
    const schemas: Record<string, ConvertedSchema> = {};
    const pending: unknown[] = [value];
    for (let one = pending.pop(); pending.length > 0 || one !== undefined; one = pending.pop()) {
      if (typeof one !== 'object' || one === null) continue;
      const target = referenceOf(one);
      const name = target === undefined ? undefined : componentName(target);
      const schema = name === undefined ? undefined : this.#named.get(name);
      if (name !== undefined && schema !== undefined && !Object.hasOwn(schemas, name)) {
        Object.defineProperty(schemas, name, {
          value: schema,
          enumerable: true,
          configurable: true,
          writable: true,
        });
        pending.push(schema);
      }
      pending.push(...Object.values(one).filter((member) => typeof member === 'object'));
    }
    return schemas;
  }

  #keywords(schema: JsonObject): Record<string, unknown> {
    const converted: Record<string, unknown> = {};
    const target = referenceOf(schema);
    if (target !== undefined) {
      const reference = this.#reference(schema);
      // Nothing fits, whatever else it says.
      if (reference === false) return { not: {} };
      if (reference === undefined) {
        this.#warn(`$ref "${shortened(target)}" has no target, and is not validated`);
        this.#widened.add(converted, '$ref');
      } else Object.assign(converted, reference);
      if (this.#isOld) {
        this.#tellIgnored(schema, target);
        return converted;
      }
    }
    for (const [keyword, value] of Object.entries(schema)) {
      if (ONE.includes(keyword)) {
        if (Array.isArray(value)) this.#left(converted, keyword, 'is a list, as in older drafts');
        else converted[keyword] = this.#convert(value);
      } else if (LISTS.includes(keyword)) {
        if (itemsOf(value).length > 0) converted[keyword] = itemsOf(value).map((one) => this.#convert(one));
        else this.#widened.add(converted, keyword);
      } else if (MAPS.includes(keyword)) {
        converted[keyword] = Object.fromEntries(
          entriesOf(value).map(([name, one]) => [name, this.#convert(one)]),
        );
      } else if (PLAIN.includes(keyword)) {
        converted[keyword] = value;
      } else if (Object.hasOwn(REFUSED, keyword) && !CONVERTED.includes(keyword) && keyword !== 'id') {
        this.#left(converted, keyword, REFUSED[keyword] ?? '');
      }
    }
    return this.#adapted(schema, converted);
  }

  /** OpenAPI 3.0 ignores what is beside a reference. */
  #tellIgnored(schema: JsonObject, target: string): void {
    const ignored = Object.keys(schema).filter((keyword) => SAYING.includes(keyword));
    if (ignored.length === 0) return;
    const names = ignored.join(', ');
    this.#warn(
      `${names} beside $ref "${shortened(target)}" is ignored, as OpenAPI 3.0 says: put them into an allOf`,
    );
  }

  /** What older documents write in another way. */
  #adapted(schema: JsonObject, converted: Record<string, unknown>): Record<string, unknown> {
    for (const [exclusive, limit] of [
      ['exclusiveMinimum', 'minimum'],
      ['exclusiveMaximum', 'maximum'],
    ] as const) {
      if (typeof converted[exclusive] !== 'boolean') continue;
      const isExclusive = converted[exclusive];
      delete converted[exclusive];
      if (!isExclusive || converted[limit] === undefined) continue;
      converted[exclusive] = converted[limit];
      delete converted[limit];
    }
    const { type, format } = converted;
    // Swagger, and bodies of files.
    if (type === 'file') {
      delete converted['type'];
      this.#widened.add(converted, 'type');
    }
    if (typeof format === 'string' && REFUSED_FORMATS.includes(format)) {
      delete converted['format'];
      this.#left(converted, 'format', `"${format}" is not supported`);
    }
    this.#readOnly.note(schema, converted);
    return converted;
  }

  /** A reference to a schema that goes along; false for one that nothing fits, undefined when it has no target. */
  #reference(schema: JsonObject): Record<string, unknown> | false | undefined {
    // That may be a reference, too, with other keywords beside it.
    const target = this.#references.findTarget(schema);
    if (typeof target === 'boolean') return target && {};
    if (!isObject(target)) return undefined;
    const known = this.#names.get(target);
    if (known !== undefined) return { $ref: `${COMPONENTS}${encoded(known)}` };
    const preferred = /(?:^|[/#])([^/#]+)$/.exec(referenceOf(schema) ?? '')?.[1] ?? 'schema';
    let name = preferred.slice(0, 100);
    for (let count = 2; this.#usedNames.has(name); count++) name = `${preferred.slice(0, 100)}-${count}`;
    this.#usedNames.add(name);
    // Before it is converted: it may lead to itself.
    this.#names.set(target, name);
    this.#named.set(name, this.#convert(target));
    return { $ref: `${COMPONENTS}${encoded(name)}` };
  }

  #left(converted: object, keyword: string, reason: string): void {
    this.#widened.add(converted, keyword);
    this.#warn(`${keyword} of a schema is not validated: it ${reason}`);
  }
}

function orNull(schema: Record<string, unknown>): Record<string, unknown> {
  const { type, enum: values, ...others } = schema;
  const isPlain =
    typeof type === 'string' && !['$ref', 'allOf', 'anyOf', 'oneOf', 'not'].some((key) => key in others);
  if (!isPlain) return { anyOf: [schema, { type: 'null' }] };
  const withNull = Array.isArray(values) && !values.includes(null) ? [...values, null] : values;
  return { ...others, type: [type, 'null'], ...(values !== undefined && { enum: withNull }) };
}

function encoded(name: string): string {
  return encodeURIComponent(name.replaceAll('~', '~0').replaceAll('/', '~1'));
}
