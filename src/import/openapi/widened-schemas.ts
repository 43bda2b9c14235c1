/**
 * Schemas that have lost something, and so accept more than the document says. Above them, what reverses (`not`, `if`)
 * or counts (`oneOf`, `maxContains`) could refuse what the document allows, and so could `unevaluatedProperties` and
 * `unevaluatedItems` where fewer members and items are looked at. These are dropped; `oneOf` becomes `anyOf`.
 */
import { componentName } from '../../model/policies/component-names.js';
import type { ValidatePolicy } from '../../model/policies/validate.js';
import { isObject, type JsonObject } from '../../util/json-object.js';
import { itemsOf, own } from './json.js';
import { rootSchemas, type SchemaAtPath, subschemas } from './subschemas.js';

type Schema = Record<string, unknown>;

/** Schemas of these are applied to the same value, and what they look at counts for the schema that they are in. */
const IN_PLACE = ['allOf', 'anyOf', 'oneOf', 'if', 'then', 'else', 'dependentSchemas'];
/** Without these, no member and no item is looked at that was not before. */
const LOOKING = [
  ...['$ref', '$dynamicRef', '$recursiveRef', 'dependencies', 'additionalItems', 'schema', ...IN_PLACE],
  ...['properties', 'patternProperties', 'additionalProperties', 'unevaluatedProperties'],
  ...['prefixItems', 'items', 'contains', 'unevaluatedItems'],
];
const UNEVALUATED = ['unevaluatedProperties', 'unevaluatedItems'];

/** A keyword that is dropped, or `oneOf` that has become `anyOf`. */
export interface DroppedSchema {
  readonly keyword: string;
  readonly place: readonly string[];
}

/** A schema of a policy, and those that it leads to. */
interface Node {
  readonly schema: Schema;
  readonly place: readonly string[];
  readonly leadsTo: readonly object[];
  readonly inPlace: readonly object[];
}

export class WidenedSchemas {
  readonly #widened = new WeakSet<object>();
  /** Those that look at fewer members or items. */
  readonly #blind = new WeakSet<object>();
  #isAny = false;

  has(schema: object): boolean {
    return this.#widened.has(schema);
  }

  /** Notes that a schema has lost a keyword; `schema` for all of it. */
  add(schema: object, keyword: string): void {
    this.#isAny = true;
    this.#widened.add(schema);
    if (LOOKING.includes(keyword)) this.#blind.add(schema);
  }

  /** Another schema stands for one that may have lost something. */
  copy(from: object, to: object): void {
    if (this.#widened.has(from)) this.#widened.add(to);
    if (this.#blind.has(from)) this.#blind.add(to);
  }

  /** Drops from a policy what could refuse more than the document does. It has no deep schemas any more. */
  settle(policy: ValidatePolicy): readonly DroppedSchema[] {
    if (!this.#isAny) return [];
    const nodes = nodesOf(policy);
    // What leads to a schema is widened with it. Dropping a keyword widens none that is not so already.
    const widened = leadingTo(nodes, this.#widened, ({ leadsTo }) => leadsTo);
    const reversing = nodes.flatMap((node) => this.#dropReversing(node, widened));
    const blind = leadingTo(nodes, this.#blind, ({ inPlace }) => inPlace);
    const unevaluated = nodes
      .filter(({ schema }) => blind.has(schema))
      .flatMap((node) => this.#drop(node, UNEVALUATED));
    return [...reversing, ...unevaluated];
  }

  #dropReversing(node: Node, widened: ReadonlySet<unknown>): readonly DroppedSchema[] {
    const { schema, place } = node;
    const dropped: DroppedSchema[] = [];
    if (widened.has(schema['not'])) dropped.push(...this.#drop(node, ['not']));
    if (widened.has(schema['if'])) dropped.push(...this.#drop(node, ['if', 'then', 'else']));
    if (widened.has(schema['contains'])) dropped.push(...this.#drop(node, ['maxContains']));
    if (itemsOf(schema['oneOf']).some((one) => widened.has(one))) {
      orAny(schema);
      // Those that fit look at what the one that fitted alone looks at.
      this.#widened.add(schema);
      dropped.push({ keyword: 'oneOf', place: [...place, 'oneOf'] });
    }
    return dropped;
  }

  #drop({ schema, place }: Node, keywords: readonly string[]): readonly DroppedSchema[] {
    return keywords
      .filter((keyword) => schema[keyword] !== undefined)
      .map((keyword) => {
        delete schema[keyword];
        this.add(schema, keyword);
        return { keyword, place: [...place, keyword] };
      });
  }
}

function orAny(schema: Schema): void {
  const { oneOf } = schema;
  delete schema['oneOf'];
  if (schema['anyOf'] === undefined) schema['anyOf'] = oneOf;
  else schema['allOf'] = [...itemsOf(schema['allOf']), { anyOf: oneOf }];
}

function nodesOf(policy: ValidatePolicy): readonly Node[] {
  const named: JsonObject = policy.components?.schemas ?? {};
  const nodes: Node[] = [];
  const pending: SchemaAtPath[] = [...rootSchemas(policy)];
  for (let one = pending.pop(); one; one = pending.pop()) {
    const { place, value } = one;
    if (!isObject(value)) continue;
    const within = subschemas(value);
    pending.push(...within.map((inner) => ({ place: [...place, ...inner.place], value: inner.value })));
    const target = targetOf(value, named);
    const inPlace = within.filter(({ place: [keyword = ''] }) => IN_PLACE.includes(keyword));
    const objects = (all: readonly SchemaAtPath[]) => [
      ...all.flatMap(({ value }) => (isObject(value) ? [value] : [])),
      ...target,
    ];
    nodes.push({ schema: value, place, leadsTo: objects(within), inPlace: objects(inPlace) });
  }
  return nodes;
}

/** The schema that a reference of a policy leads to, if there is one. @param named the schemas of the policy */
export function targetOf({ $ref }: JsonObject, named: JsonObject): readonly JsonObject[] {
  const name = typeof $ref === 'string' ? componentName($ref) : undefined;
  const target = name === undefined ? undefined : own(named, name);
  return isObject(target) ? [target] : [];
}

/** Schemas that lead to a marked one, and the marked ones. */
function leadingTo(
  nodes: readonly Node[],
  marked: WeakSet<object>,
  next: (node: Node) => readonly object[],
): ReadonlySet<unknown> {
  const above = new Map<object, object[]>();
  for (const node of nodes)
    for (const below of next(node)) {
      const known = above.get(below);
      if (known) known.push(node.schema);
      else above.set(below, [node.schema]);
    }
  const pending: object[] = nodes.map(({ schema }) => schema).filter((schema) => marked.has(schema));
  const all = new Set<object>(pending);
  for (let one = pending.pop(); one; one = pending.pop())
    for (const schema of above.get(one) ?? []) {
      if (all.has(schema)) continue;
      all.add(schema);
      pending.push(schema);
    }
  return all;
}
