/** Examples of what a schema allows, to begin with. */
import { type Json, listOf, objectOf, resolved, textOf } from './document.js';

const DEEPEST = 6;
const FORMATS: Readonly<Record<string, string>> = {
  uuid: '00000000-0000-4000-8000-000000000000',
  'date-time': '2026-01-01T00:00:00Z',
  date: '2026-01-01',
  email: 'ada@example.com',
  hostname: 'api.example.com',
  uri: 'https://example.com/',
};

/** A value of a schema: its example or default, else one that is made up of its required members. */
export function exampleOf(document: Json, schema: unknown, depth = 0): unknown {
  const one = objectOf(resolved(document, schema));
  for (const given of [one['example'], listOf(one['examples'])[0], one['default'], one['const']])
    if (given !== undefined) return given;
  if (listOf(one['enum']).length > 0) return listOf(one['enum'])[0];
  if (depth > DEEPEST) return null;
  const parts = listOf(one['allOf']);
  if (parts.length > 0)
    return Object.assign({}, ...parts.map((part) => objectOf(exampleOf(document, part, depth + 1))));
  const [alternative] = [...listOf(one['oneOf']), ...listOf(one['anyOf'])];
  if (alternative !== undefined && one['properties'] === undefined)
    return exampleOf(document, alternative, depth + 1);
  return madeUp(document, one, depth);
}

function madeUp(document: Json, schema: Json, depth: number): unknown {
  const [type] = [schema['type']].flat();
  if (type === 'object' || schema['properties'] !== undefined) {
    const required = listOf(schema['required']);
    const members = Object.entries(objectOf(schema['properties']));
    const shown =
      required.length > 0 ? members.filter(([name]) => required.includes(name)) : members.slice(0, 8);
    return Object.fromEntries(shown.map(([name, member]) => [name, exampleOf(document, member, depth + 1)]));
  }
  if (type === 'array') return [exampleOf(document, schema['items'], depth + 1)];
  if (type === 'integer' || type === 'number') return schema['minimum'] ?? 0;
  if (type === 'boolean') return false;
  if (type === 'null') return null;
  return FORMATS[textOf(schema['format'])] ?? 'text';
}
