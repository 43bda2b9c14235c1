/**
 * Members that are `readOnly`: clients do not send them, so nothing that applies to the same value may require them of
 * a request, wherever it stands: beside them, in another part of `allOf`, or in a schema that is referred to.
 */
import type { ValidatePolicy } from '../../model/policies/validate.js';
import { isObject, type JsonObject } from '../../util/json-object.js';
import { entriesOf, itemsOf, own } from './json.js';
import { type References, referenceOf } from './references.js';
import { rootSchemas, subschemas } from './subschemas.js';
import { targetOf, type WidenedSchemas } from './widened-schemas.js';

type Names = ReadonlySet<string>;
const NONE: Names = new Set();
/** Schemas of these require members of the same value. Those of `not` and `if` refuse nothing for what is missing. */
const REQUIRING = ['allOf', 'anyOf', 'oneOf', 'then', 'else', 'dependentSchemas'];

/** Whether a member is, by its own schema or one that it extends. @param isOld nothing counts beside a reference */
export function isReadOnly(references: References, member: unknown, isOld: boolean): boolean {
  const seen = new Set<unknown>();
  const pending = [member];
  while (pending.length > 0) {
    const schema = pending.pop();
    if (!isObject(schema) || seen.has(schema)) continue;
    seen.add(schema);
    const isReference = referenceOf(schema) !== undefined;
    if (isReference) pending.push(references.findTarget(schema));
    if (isReference && isOld) continue;
    if (own(schema, 'readOnly') === true) return true;
    pending.push(...itemsOf(own(schema, 'allOf')));
  }
  return false;
}

export class ReadOnlyMembers {
  readonly #references: References;
  readonly #widened: WidenedSchemas;
  readonly #isOld: boolean;
  /** Names of such members, by the converted schemas, which do not say it any more. */
  readonly #names = new WeakMap<object, Names>();

  /** @param isOld it is a document of OpenAPI 3.0, which says itself that they are not required of requests */
  constructor(references: References, widened: WidenedSchemas, isOld: boolean) {
    this.#references = references;
    this.#widened = widened;
    this.#isOld = isOld;
  }

  /** Notes which members a schema of the document has, for what it is converted to. */
  note(schema: JsonObject, converted: object): void {
    const names = entriesOf(own(schema, 'properties')).flatMap(([name, member]) =>
      isReadOnly(this.#references, member, this.#isOld) ? [name] : [],
    );
    if (names.length > 0) this.#names.set(converted, new Set(names));
  }

  /** Another schema stands for one. */
  copy(from: object, to: object): void {
    const names = this.#names.get(from);
    if (names) this.#names.set(to, names);
  }

  /** Requires none of them any more. @param policy one that compiles: its schemas do not lead back to themselves */
  relax(policy: ValidatePolicy): void {
    const named: JsonObject = policy.components?.schemas ?? {};
    const schemas = schemasOf(policy);
    const names = this.#namesIn(schemas, named);
    if (names.size === 0) return;
    // What extends a schema has all of its members, too.
    const extended = new Set(schemas.flatMap((schema) => basesOf(schema, named)));
    for (const [schema, members] of names)
      if (!extended.has(schema)) this.#relax(schema, members, names, named);
  }

  /** Names of such members, by the schemas that have some, with those of the schemas that they extend. */
  #namesIn(schemas: readonly JsonObject[], named: JsonObject): ReadonlyMap<JsonObject, Names> {
    const namesOf = new Map<JsonObject, Names>();
    const find = (schema: JsonObject): Names => {
      const known = namesOf.get(schema);
      if (known) return known;
      namesOf.set(schema, NONE);
      const all = [this.#names.get(schema) ?? NONE, ...basesOf(schema, named).map(find)];
      const [first = NONE, ...others] = all.filter(({ size }) => size > 0);
      // Long chains share one set.
      const names = others.length === 0 ? first : new Set([first, ...others].flatMap((one) => [...one]));
      namesOf.set(schema, names);
      return names;
    };
    for (const schema of schemas) find(schema);
    return new Map([...namesOf].filter(([, { size }]) => size > 0));
  }

  #relax(root: JsonObject, names: Names, all: ReadonlyMap<JsonObject, Names>, named: JsonObject): void {
    const seen = new Set<JsonObject>([root]);
    for (const schema of seen) {
      const required = itemsOf(schema['required']);
      const removed = required.filter((name) => names.has(String(name)));
      if (removed.length > 0) {
        (schema as Record<string, unknown>)['required'] = required.filter((name) => !names.has(String(name)));
        const ownNames = all.get(schema) ?? NONE;
        // Elsewhere, it may stand alone.
        const isExact = this.#isOld && removed.every((name) => ownNames.has(String(name)));
        if (!isExact) this.#widened.add(schema, 'required');
      }
      for (const one of within(schema, REQUIRING, named)) seen.add(one);
    }
  }
}

/** All schemas of a policy, each once. */
function schemasOf(policy: ValidatePolicy): readonly JsonObject[] {
  const all = new Set<JsonObject>();
  for (const { value } of rootSchemas(policy)) if (isObject(value)) all.add(value);
  for (const schema of all) for (const { value } of subschemas(schema)) if (isObject(value)) all.add(value);
  return [...all];
}

function basesOf(schema: JsonObject, named: JsonObject): readonly JsonObject[] {
  return within(schema, ['allOf'], named);
}

function within(schema: JsonObject, keywords: readonly string[], named: JsonObject): readonly JsonObject[] {
  const inner = subschemas(schema).filter(({ place: [keyword = ''] }) => keywords.includes(keyword));
  return [...inner.flatMap(({ value }) => (isObject(value) ? [value] : [])), ...targetOf(schema, named)];
}
