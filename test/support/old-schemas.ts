/** Schemas of OpenAPI 3.0 in the JSON Schema of today, as far as random documents have them. */

/** Their values are data. */
const DATA = ['enum', 'const', 'required', 'dependentRequired'];
/** Their members are schemas, by names. */
const MAPS = ['properties', 'patternProperties', 'dependentSchemas'];

type Schema = Readonly<Record<string, unknown>>;

/** What a schema of 3.0 says of a request. */
export function laterSchema(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(laterSchema);
  if (typeof schema !== 'object' || schema === null) return schema;
  const { nullable, ...others } = schema as Schema;
  // What is beside a reference is ignored.
  if (typeof others['$ref'] === 'string') return { $ref: others['$ref'] };
  const later: Record<string, unknown> = Object.fromEntries(
    Object.entries(others).map(([keyword, value]) => [keyword, laterValue(keyword, value)]),
  );
  if (nullable === true && typeof later['type'] === 'string') later['type'] = [later['type'], 'null'];
  const { properties = {}, required } = others as { properties?: Schema; required?: readonly string[] };
  const isReadOnly = (name: string) =>
    Object.hasOwn(properties, name) && (properties[name] as Schema)['readOnly'] === true;
  if (required) later['required'] = required.filter((name) => !isReadOnly(name));
  return later;
}

function laterValue(keyword: string, value: unknown): unknown {
  if (DATA.includes(keyword)) return value;
  if (!MAPS.includes(keyword)) return laterSchema(value);
  const members = Object.entries(value as Schema);
  return Object.fromEntries(members.map(([name, one]) => [name, laterSchema(one)]));
}
