/** Schemas as the front evaluates them; the other end is `rust/front/src/policies/validate/compiled.rs`. */

/** A schema: its place in the list of all. */
export type SchemaIndex = number;

/** `true` and `false` allow everything and nothing. Members without a comment are the keywords of their names. */
export type CompiledSchema = boolean | CompiledKeywords;

export interface CompiledKeywords {
  readonly type?: readonly string[];
  readonly enum?: readonly unknown[];
  /** In a list, because it may be null. */
  readonly const?: readonly [unknown];
  readonly multipleOf?: number;
  readonly maximum?: number;
  readonly exclusiveMaximum?: number;
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maxLength?: number;
  readonly minLength?: number;
  readonly pattern?: CompiledPatternKeyword;
  readonly format?: string;
  readonly maxItems?: number;
  readonly minItems?: number;
  readonly uniqueItems?: boolean;
  readonly contains?: SchemaIndex;
  readonly maxContains?: number;
  readonly minContains?: number;
  readonly prefixItems?: readonly SchemaIndex[];
  readonly items?: SchemaIndex;
  readonly unevaluatedItems?: SchemaIndex;
  readonly maxProperties?: number;
  readonly minProperties?: number;
  readonly required?: readonly string[];
  readonly dependentRequired?: Readonly<Record<string, readonly string[]>>;
  readonly properties?: Readonly<Record<string, SchemaIndex>>;
  readonly patternProperties?: readonly (readonly [CompiledPatternKeyword, SchemaIndex])[];
  readonly additionalProperties?: SchemaIndex;
  readonly propertyNames?: SchemaIndex;
  readonly unevaluatedProperties?: SchemaIndex;
  readonly dependentSchemas?: Readonly<Record<string, SchemaIndex>>;
  readonly $ref?: SchemaIndex;
  readonly allOf?: readonly SchemaIndex[];
  readonly anyOf?: readonly SchemaIndex[];
  readonly oneOf?: readonly SchemaIndex[];
  readonly not?: SchemaIndex;
  readonly if?: SchemaIndex;
  readonly then?: SchemaIndex;
  readonly else?: SchemaIndex;
}

/** A pattern as the front takes it, as the schema has it, and its weight. */
export type CompiledPatternKeyword = readonly [rust: string, shown: string, weight: number];
