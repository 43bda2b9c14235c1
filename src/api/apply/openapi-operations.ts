/** Operations of OpenAPI documents: as the imported document had them, or written from what an endpoint says. */
import { isDeepStrictEqual } from 'node:util';
import { own } from '../../import/openapi/json.js';
import { descriptionFrom } from '../../import/openapi/operations.js';
import { componentName } from '../../model/policies/component-names.js';
import type { ValidatePolicy } from '../../model/policies/validate.js';
import { parameterNames, parseRoute } from '../../model/route-pattern.js';
import type { ExistingEndpoint } from '../../store/import-rows.js';
import { isObject, type JsonObject } from '../../util/json-object.js';

const COMPONENTS = '#/components/schemas/';
const RESPONSES = { default: { description: 'The answer of the handler' } };

/** The operation of an imported document, with what the endpoint has since got of its own. */
export function keptOperation(endpoint: ExistingEndpoint, path: string, operation: JsonObject): JsonObject {
  const { name, method, description } = endpoint;
  const isNamed = own(operation, 'operationId') === name || name === `${method} ${path}`;
  const texts = [own(operation, 'summary'), own(operation, 'description')];
  const isDescribed = descriptionFrom(texts, '', () => undefined) === description;
  const { summary: _, description: __, ...others } = operation;
  const described = isDescribed ? operation : { ...others, ...(description !== null && { description }) };
  return isNamed ? described : { ...described, operationId: name };
}

/**
 * The operation of an endpoint that no document has.
 * @param path in the document
 * @param schemas of the document, to which those of the endpoint's policy are added
 */
export function writtenOperation(
  endpoint: ExistingEndpoint,
  path: string,
  schemas: DocumentSchemas,
): JsonObject {
  const { name, method, description, policies } = endpoint;
  const { parameters = [], body, components } = policies?.validate ?? ({} as Partial<ValidatePolicy>);
  const renamed = schemas.add(components?.schemas ?? {});
  const described = parameters.map((parameter) => ({
    ...parameter,
    ...(parameter.in === 'path' && { required: true }),
  }));
  const known = new Set(described.filter((one) => one.in === 'path').map((one) => one.name));
  const inPath = parseRoute(path)
    .segments.flatMap(parameterNames)
    .filter((one) => !known.has(one))
    .map((one) => ({ name: one, in: 'path', required: true, schema: pathSchema(endpoint) }));
  const all = [...inPath, ...described];
  return {
    ...(name !== `${method} ${path}` && { operationId: name }),
    ...(description !== null && { description }),
    ...(all.length > 0 && { parameters: renamed(all) }),
    ...(body && { requestBody: renamed(body) }),
    responses: RESPONSES,
  };
}

/** Generated code reads text. For other code, nothing is said, so that nothing is to be checked. */
function pathSchema({ code_digest, generated_digest }: ExistingEndpoint): JsonObject {
  return code_digest === generated_digest ? { type: 'string' } : {};
}

/** The shared schemas of a document. */
export class DocumentSchemas {
  readonly #schemas: Map<string, unknown>;

  constructor(schemas: JsonObject) {
    this.#schemas = new Map(Object.entries(schemas));
  }

  /**
   * Adds schemas of a policy, under another name where one is taken by another schema.
   * @returns what changes references of the policy accordingly
   */
  add(schemas: Readonly<Record<string, unknown>>): (value: unknown) => unknown {
    const names = this.#namesFor(schemas);
    const renamed = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(renamed);
      if (!isObject(value)) return value;
      return Object.fromEntries(
        Object.entries(value).map(([key, member]) => {
          const name = key === '$ref' ? names.get(nameIn(member) ?? '') : undefined;
          return [key, name === undefined ? renamed(member) : `${COMPONENTS}${encoded(name)}`];
        }),
      );
    };
    for (const [name, schema] of Object.entries(schemas))
      this.#schemas.set(names.get(name) ?? name, renamed(schema));
    return renamed;
  }

  /** Its own name for a schema that is new or the same, another one for one that is not. */
  #namesFor(schemas: Readonly<Record<string, unknown>>): ReadonlyMap<string, string> {
    const others = new Set<string>();
    const isOther = (name: string, schema: unknown) =>
      this.#schemas.has(name) &&
      (!isDeepStrictEqual(this.#schemas.get(name), schema) ||
        [...referencesIn(schema)].some((target) => others.has(target)));
    // A schema that leads to another one than before is another one, too.
    for (let before = -1; before < others.size; ) {
      before = others.size;
      for (const [name, schema] of Object.entries(schemas)) if (isOther(name, schema)) others.add(name);
    }
    const names = new Map(Object.keys(schemas).map((name) => [name, name]));
    for (const preferred of others) {
      const usedNames = new Set([...this.#schemas.keys(), ...names.values()]);
      let name = preferred;
      for (let count = 2; usedNames.has(name); count++) name = `${preferred}-${count}`;
      names.set(preferred, name);
    }
    return names;
  }

  all(): JsonObject {
    return Object.fromEntries(this.#schemas);
  }
}

function encoded(name: string): string {
  return encodeURIComponent(name.replaceAll('~', '~0').replaceAll('/', '~1'));
}

/** Names of components to which something in a value leads. */
function referencesIn(value: unknown, references = new Set<string>()): ReadonlySet<string> {
  if (Array.isArray(value)) for (const item of value) referencesIn(item, references);
  else if (isObject(value))
    for (const [key, member] of Object.entries(value)) {
      const name = key === '$ref' ? nameIn(member) : undefined;
      if (name !== undefined) references.add(name);
      referencesIn(member, references);
    }
  return references;
}

function nameIn(reference: unknown): string | undefined {
  return typeof reference === 'string' ? componentName(reference) : undefined;
}
