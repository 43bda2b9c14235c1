/** What a document says of the requests to an endpoint, as an example to begin with. */
import type { OpenApiExport } from '../../generated/routes.js';
import type { Pair, Trial } from './trial.js';

/** References that lead in a circle end somewhere. */
const MOST_DEPTH = 8;

type Json = Readonly<Record<string, unknown>>;

export interface Sample extends Trial {
  /** Parameters of the query that may be left out. */
  readonly offered: readonly Pair[];
}

/** The example of an operation; undefined when no document has it. */
export function sampleOf(
  documents: OpenApiExport['documents'],
  method: string,
  paths: readonly string[],
): Sample | undefined {
  for (const { document } of documents) {
    for (const path of paths) {
      const item = member(member(document, 'paths'), path);
      const operation = member(item, method.toLowerCase());
      if (operation) return exampleOf(operation, array(item?.['parameters']), document);
    }
  }
  return undefined;
}

/** @param shared parameters of all operations of its path */
function exampleOf(operation: Json, shared: readonly unknown[], document: Json): Sample {
  const byName = new Map<string, Json>();
  // Those of the operation count before those that are shared.
  for (const given of [...shared, ...array(operation['parameters'])]) {
    const parameter = resolved(given, document);
    byName.set(`${parameter['in']} ${parameter['name']}`, parameter);
  }
  const parameters = [...byName.values()];
  const inPlace = (place: string, isIncluded: (parameter: Json) => boolean = () => true) =>
    parameters
      .filter((parameter) => parameter['in'] === place && isIncluded(parameter))
      .map((parameter) => ({
        name: String(parameter['name']),
        value: text(valueIn(parameter, document, new Set())),
      }));
  const { type, body } = bodyOf(operation, document);
  const isRequired = (parameter: Json) => parameter['required'] === true;
  return {
    path: Object.fromEntries(inPlace('path').map(({ name, value }) => [name, value])),
    query: inPlace('query', isRequired),
    offered: inPlace('query', (parameter) => !isRequired(parameter)),
    headers: [
      ...(type === undefined ? [] : [{ name: 'Content-Type', value: type }]),
      ...inPlace('header', isRequired),
    ],
    body,
  };
}

function bodyOf(
  operation: Json,
  document: Json,
): { readonly type: string | undefined; readonly body: string } {
  const content = member(resolved(operation['requestBody'], document), 'content') ?? {};
  const types = Object.keys(content);
  const type = types.find((one) => /[/+]json\b/.test(one)) ?? types[0];
  if (type === undefined) return { type, body: '' };
  const value = () => valueIn(member(content, type) ?? {}, document, new Set());
  if (/[/+]json\b/.test(type)) return { type, body: JSON.stringify(value(), null, 2) };
  if (type === 'application/x-www-form-urlencoded') {
    const members = value();
    const fields = Object.entries(isJson(members) ? members : {}).map(([name, field]) => [name, text(field)]);
    return { type, body: String(new URLSearchParams(fields)) };
  }
  // A form of parts needs a boundary, which its sender makes up.
  const isOpen = type.includes('*') || type.startsWith('multipart/');
  return { type: isOpen ? undefined : type, body: '' };
}

/**
 * A value for a parameter, a media type, or a schema: the example where there is one, else what the schema allows.
 * @param within the references that led here
 */
function valueIn(described: Json, document: Json, within: ReadonlySet<string>): unknown {
  const named = Object.values(member(described, 'examples') ?? {})[0];
  const [listed] = array(described['examples']);
  for (const given of [
    described['example'],
    member({ named }, 'named')?.['value'],
    listed,
    described['default'],
  ])
    if (given !== undefined) return given;
  const { schema } = described;
  if (schema !== undefined) return referred(schema, document, within);
  const [choice] = array(described['enum']);
  return described['const'] ?? choice ?? byType(described, document, within);
}

/** Nothing for a schema within itself: it would have no end. */
function referred(schema: unknown, document: Json, within: ReadonlySet<string>): unknown {
  const reference = isJson(schema) ? schema['$ref'] : undefined;
  if (typeof reference !== 'string') return valueIn(resolved(schema, document), document, within);
  if (within.has(reference)) return undefined;
  return valueIn(resolved(schema, document), document, new Set([...within, reference]));
}

function byType(schema: Json, document: Json, within: ReadonlySet<string>): unknown {
  const next = (inner: unknown) => referred(inner, document, within);
  const parts = array(schema['allOf']);
  if (parts.length > 0)
    return Object.assign({}, ...parts.map(next).filter(isJson), ownMembers(schema, document, next));
  const [choice] = [...array(schema['oneOf']), ...array(schema['anyOf'])];
  if (choice !== undefined) return next(choice);
  const [type] = [schema['type']].flat().filter((one) => one !== 'null');
  if (type === 'object' || isJson(schema['properties'])) return ownMembers(schema, document, next);
  if (type === 'array')
    return [next(schema['items'] ?? {})].filter((item) => item !== undefined && item !== null);
  if (type === 'integer' || type === 'number') return schema['minimum'] ?? 0;
  if (type === 'boolean') return false;
  return type === 'string' ? (FORMATS.get(String(schema['format'])) ?? '') : null;
}

const FORMATS = new Map([
  ['date-time', '2026-01-31T12:00:00Z'],
  ['date', '2026-01-31'],
  ['email', 'ada@example.com'],
  ['uuid', '00000000-0000-4000-8000-000000000000'],
  ['uri', 'https://example.com/'],
]);

/** Without those that only answers have. */
function ownMembers(schema: Json, document: Json, next: (schema: unknown) => unknown): Json {
  const members = Object.entries(member(schema, 'properties') ?? {})
    .filter(([, inner]) => resolved(inner, document)['readOnly'] !== true)
    .map(([name, inner]) => [name, next(inner)] as const);
  return Object.fromEntries(members.filter(([, value]) => value !== undefined));
}

/** What a reference within the document leads to. */
function resolved(value: unknown, document: Json): Json {
  let schema = isJson(value) ? value : {};
  for (let steps = 0; steps < MOST_DEPTH && typeof schema['$ref'] === 'string'; steps++) {
    const { $ref: reference } = schema;
    if (!reference.startsWith('#/')) return {};
    let at: Json | undefined = document;
    for (const part of reference.slice(2).split('/'))
      at = member(at, decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~'));
    schema = at ?? {};
  }
  return schema;
}

function member(value: unknown, name: string): Json | undefined {
  const member = isJson(value) && Object.hasOwn(value, name) ? value[name] : undefined;
  return isJson(member) ? member : undefined;
}

function isJson(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const array = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const text = (value: unknown): string =>
  value === null ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value);
