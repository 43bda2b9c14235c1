/** What a document says of the requests to an endpoint, as an example to begin with. */
import type { OpenApiExport } from '../../generated/routes.js';
import type { Pair } from './trial.js';

/** References that lead in a circle end somewhere. */
const MOST_DEPTH = 8;

type Json = Readonly<Record<string, unknown>>;

export interface Sample {
  readonly path: Readonly<Record<string, string>>;
  readonly query: readonly Pair[];
  readonly headers: readonly Pair[];
  readonly body: string;
}

/** The example of an operation; undefined when no document has it. */
export function sampleOf(
  { documents }: OpenApiExport,
  method: string,
  paths: readonly string[],
): Sample | undefined {
  for (const { document } of documents) {
    for (const path of paths) {
      const operation = member(member(member(document, 'paths'), path), method.toLowerCase());
      if (operation) return exampleOf(operation, document);
    }
  }
  return undefined;
}

function exampleOf(operation: Json, document: Json): Sample {
  const parameters = array(operation['parameters']).map((parameter) => resolved(parameter, document));
  const inPlace = (place: string, wanted: (parameter: Json) => boolean = () => true) =>
    parameters
      .filter((parameter) => parameter['in'] === place && wanted(parameter))
      .map((parameter) => ({
        name: String(parameter['name']),
        value: text(valueIn(parameter, document, 0)),
      }));
  const { type, body } = bodyOf(operation, document);
  const isRequired = (parameter: Json) => parameter['required'] === true;
  return {
    path: Object.fromEntries(inPlace('path').map(({ name, value }) => [name, value])),
    query: inPlace('query', isRequired),
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
  if (!/[/+]json\b/.test(type)) return { type: type.includes('*') ? undefined : type, body: '' };
  return { type, body: JSON.stringify(valueIn(member(content, type) ?? {}, document, 0), null, 2) };
}

/** A value for a parameter, a media type, or a schema: the example where there is one, else what the schema allows. */
function valueIn(described: Json, document: Json, depth: number): unknown {
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
  if (schema !== undefined) return valueIn(resolved(schema, document), document, depth + 1);
  const [choice] = array(described['enum']);
  return described['const'] ?? choice ?? byType(described, document, depth);
}

function byType(schema: Json, document: Json, depth: number): unknown {
  if (depth > MOST_DEPTH) return null;
  const next = (inner: unknown) => valueIn(resolved(inner, document), document, depth + 1);
  const parts = array(schema['allOf']);
  if (parts.length > 0) return Object.assign({}, ...parts.map(next).filter(isJson), ownMembers(schema, next));
  const [choice] = [...array(schema['oneOf']), ...array(schema['anyOf'])];
  if (choice !== undefined) return next(choice);
  const [type] = [schema['type']].flat().filter((one) => one !== 'null');
  if (type === 'object' || isJson(schema['properties'])) return ownMembers(schema, next);
  if (type === 'array') return schema['items'] === undefined ? [] : [next(schema['items'])];
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

function ownMembers(schema: Json, next: (schema: unknown) => unknown): Json {
  const members = Object.entries(member(schema, 'properties') ?? {});
  return Object.fromEntries(members.map(([name, inner]) => [name, next(inner)]));
}

/** What a reference within the document leads to. */
function resolved(value: unknown, document: Json): Json {
  let found = isJson(value) ? value : {};
  for (let steps = 0; steps < MOST_DEPTH && typeof found['$ref'] === 'string'; steps++) {
    const { $ref: reference } = found;
    if (!reference.startsWith('#/')) return {};
    let at: Json | undefined = document;
    for (const part of reference.slice(2).split('/'))
      at = member(at, decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~'));
    found = at ?? {};
  }
  return found;
}

function member(value: unknown, name: string): Json | undefined {
  const found = isJson(value) && Object.hasOwn(value, name) ? value[name] : undefined;
  return isJson(found) ? found : undefined;
}

function isJson(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const array = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const text = (value: unknown): string =>
  value === null ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value);
