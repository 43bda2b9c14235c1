/** The keywords of JSON Schema 2020-12 and of OpenAPI: which are enforced, refused, or say nothing about values. */

/** Keywords whose values are schemas. */
export const SCHEMA_KEYWORDS = [
  ...(['not', 'if', 'then', 'else', 'items', 'contains', 'additionalProperties', 'propertyNames'] as const),
  ...(['unevaluatedItems', 'unevaluatedProperties'] as const),
] as const;
/** Lists of schemas. */
export const LIST_KEYWORDS = ['allOf', 'anyOf', 'oneOf', 'prefixItems'] as const;
/** Schemas by names. */
export const MAP_KEYWORDS = ['properties', 'patternProperties', 'dependentSchemas'] as const;
/** Schemas that only references lead to. */
export const HOLDERS = ['$defs', 'definitions'] as const;
export const COUNT_KEYWORDS = [
  ...(['maxLength', 'minLength', 'maxItems', 'minItems', 'maxContains', 'minContains'] as const),
  ...(['maxProperties', 'minProperties'] as const),
] as const;
export const NUMBER_KEYWORDS = ['maximum', 'exclusiveMaximum', 'minimum', 'exclusiveMinimum'] as const;

export const TYPES = ['null', 'boolean', 'integer', 'number', 'string', 'array', 'object'] as const;

/** Keywords that are known and not enforced, with what to write instead. */
export const REFUSED: Readonly<Record<string, string>> = {
  $dynamicRef: 'is not supported; use $ref',
  $recursiveRef: 'is not supported; use $ref',
  $recursiveAnchor: 'is not supported; use $anchor',
  $vocabulary: 'is not supported',
  id: 'is of draft 4; use $id',
  nullable: 'is of OpenAPI 3.0; add "null" to the type',
  additionalItems: 'is of older drafts; use items, with prefixItems',
  dependencies: 'is of older drafts; use dependentRequired or dependentSchemas',
};

/** Formats that are enforced. Others are ignored: such as `binary` and `password`, which say nothing of values. */
export const SCHEMA_FORMATS = [
  ...(['date-time', 'date', 'time', 'duration', 'email', 'hostname', 'ipv4', 'ipv6'] as const),
  ...(['uri', 'uri-reference', 'iri', 'iri-reference', 'uri-template', 'uuid'] as const),
  ...(['json-pointer', 'relative-json-pointer', 'int32', 'int64', 'float', 'double', 'byte'] as const),
] as const;
export const REFUSED_FORMATS = ['idn-email', 'idn-hostname', 'regex'];

/** The only dialect. */
export const DIALECT = /^https?:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/;
