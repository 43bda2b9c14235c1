/** The schemas of a policy `validate`, and those within them, with their places. */
import { LIST_KEYWORDS, MAP_KEYWORDS, SCHEMA_KEYWORDS } from '../../model/json-schema/keywords.js';
import type { ValidatePolicy } from '../../model/policies/validate.js';
import type { JsonObject } from '../../util/json-object.js';
import { entriesOf, itemsOf } from './json.js';

const ONE: readonly string[] = SCHEMA_KEYWORDS;
const LISTS: readonly string[] = LIST_KEYWORDS;
const MAPS: readonly string[] = MAP_KEYWORDS;

/** A value that is a schema, and its place: from the policy, or from the schema that it is in. */
export interface SchemaAtPath {
  readonly place: readonly string[];
  readonly value: unknown;
}

/** The schemas that are in no other one. */
export function rootSchemas(policy: ValidatePolicy): readonly SchemaAtPath[] {
  const { parameters = [], body, components } = policy;
  const ofMedia = (content: unknown, place: readonly string[]) =>
    entriesOf(content).flatMap(([type, media]) => schemaOf(media, [...place, 'content', type]));
  return [
    ...entriesOf(components?.schemas).map(([name, value]) => ({
      place: ['components', 'schemas', name],
      value,
    })),
    ...parameters.flatMap((parameter, at) => {
      const place = ['parameters', String(at)];
      return [...schemaOf(parameter, place), ...ofMedia(parameter.content, place)];
    }),
    ...ofMedia(body?.content, ['body']),
  ];
}

function schemaOf(holder: unknown, place: readonly string[]): readonly SchemaAtPath[] {
  const [, value] = entriesOf(holder).find(([key]) => key === 'schema') ?? [];
  return value === undefined ? [] : [{ place: [...place, 'schema'], value }];
}

/** The schemas directly within one. The first key of a place is the keyword. */
export function subschemas(schema: JsonObject): readonly SchemaAtPath[] {
  return Object.entries(schema).flatMap(([keyword, value]): readonly SchemaAtPath[] => {
    if (ONE.includes(keyword)) return [{ place: [keyword], value }];
    if (LISTS.includes(keyword))
      return itemsOf(value).map((one, at) => ({ place: [keyword, String(at)], value: one }));
    if (MAPS.includes(keyword))
      return entriesOf(value).map(([name, one]) => ({ place: [keyword, name], value: one }));
    return [];
  });
}
