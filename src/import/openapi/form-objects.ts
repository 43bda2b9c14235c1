/** Forms that may have objects: they are sent as texts of JSON, which the policy `validate` takes for plain texts. */

import { isObject, type JsonObject } from '../../util/json-object.js';
import { entriesOf, itemsOf, own } from './json.js';
import { isReadOnly } from './read-only.js';
import { type References, referenceOf } from './references.js';
import type { Schemas } from './schemas.js';

/** Schemas of these are applied to the same value. */
const LISTS = ['allOf', 'anyOf', 'oneOf'];
const SCHEMAS = ['then', 'else'];
/** Keywords with schemas of members: by name, and of all others. */
const MEMBERS = ['properties', 'patternProperties'];
const OTHER_MEMBERS = ['additionalProperties', 'unevaluatedProperties'];

export class FormObjects {
  readonly #references: References;
  readonly #schemas: Schemas;
  readonly #isOld: boolean;

  /** @param sources `isOld` of a document of OpenAPI 3.0 */
  constructor(sources: {
    readonly references: References;
    readonly schemas: Schemas;
    readonly isOld: boolean;
  }) {
    this.#references = sources.references;
    this.#schemas = sources.schemas;
    this.#isOld = sources.isOld;
  }

  /** Whether a member that clients send may be an object, or a list of objects or lists. */
  areIn(form: unknown): boolean {
    return this.#inPlace(form).some((part) => {
      const named = MEMBERS.flatMap((keyword) => entriesOf(own(part, keyword)).map(([, member]) => member));
      const members = [...named, ...OTHER_MEMBERS.map((keyword) => own(part, keyword))];
      return members.some((member) => !this.#isReadOnly(member) && this.#hasObjects(member));
    });
  }

  #isReadOnly(member: unknown): boolean {
    return isReadOnly(this.#references, member, this.#isOld);
  }

  #hasObjects(member: unknown): boolean {
    return this.#inPlace(member).some((part) => {
      if (this.#isA(part, ['object'])) return true;
      const items = [own(part, 'items'), ...itemsOf(own(part, 'prefixItems'))];
      return items
        .flatMap((item) => this.#inPlace(item))
        .some((item) => this.#isA(item, ['object', 'array']));
    });
  }

  #isA(schema: JsonObject, types: readonly string[]): boolean {
    return types.includes(this.#schemas.typeOf(schema));
  }

  /** A schema, and all that are applied to the same value. */
  #inPlace(schema: unknown): readonly JsonObject[] {
    const objects = new Set<JsonObject>();
    const pending = [schema];
    while (pending.length > 0) {
      const one = pending.pop();
      if (!isObject(one) || objects.has(one)) continue;
      objects.add(one);
      if (referenceOf(one) !== undefined) pending.push(this.#references.findTarget(one));
      for (const keyword of LISTS) pending.push(...itemsOf(own(one, keyword)));
      for (const keyword of SCHEMAS) pending.push(own(one, keyword));
      pending.push(...entriesOf(own(one, 'dependentSchemas')).map(([, inner]) => inner));
    }
    return [...objects];
  }
}
