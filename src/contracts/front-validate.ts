/**
 * The policy `validate`, with its schemas, as the front gets it in a text of its own.
 *
 * `npm run contracts` has written this file from `rust/front/src/policies/validate`: change it there.
 */

/** A schema: its place in the list of all. */
export type Index = number;

export type Mode = 'report' | 'enforce';

export interface CompiledValidate {
  readonly mode: Mode;
  readonly parameters: readonly Parameter[];
  readonly body?: CompiledBody;
  readonly schemas: readonly CompiledSchema[];
}

export type Source = 'path' | 'query' | 'header' | 'cookie';

export type ParameterStyle =
  | 'simple'
  | 'label'
  | 'matrix'
  | 'form'
  | 'spaceDelimited'
  | 'pipeDelimited'
  | 'deepObject';

export interface Parameter {
  readonly in: Source;
  readonly name: string;
  readonly required: boolean;
  readonly style: ParameterStyle;
  readonly explode: boolean;
  readonly allowEmpty: boolean;
  /** The value is a JSON text. */
  readonly isJson: boolean;
  readonly shape: Shape;
}

/** How a value is read from text. */
export interface Shape {
  readonly schema: Index;
  /** Empty: of any type. */
  readonly types: Types;
  readonly items?: Shape;
  readonly members?: Readonly<Record<string, Shape>>;
  /** The shapes of members whose names fit a pattern. */
  readonly patterns?: readonly PatternShape[];
  /** The shape of other members. */
  readonly others?: Shape;
}

/** The shape of members whose names fit a pattern: that at a place in the list of a schema. */
export interface PatternShape {
  readonly schema: Index;
  readonly at: number;
  readonly shape: Shape;
}

export interface CompiledBody {
  readonly required: boolean;
  readonly types: readonly MediaType[];
}

export interface MediaType {
  /** The media type in lower case, without parameters; it may end with `/*`. */
  readonly type: string;
  readonly read: BodyFormat;
  readonly shape?: Shape;
}

export type BodyFormat = 'json' | 'form' | 'text' | 'nothing';

/** `true` and `false` allow everything and nothing. */
export type CompiledSchema = boolean | Keywords;

/** A pattern as the library takes it, as it is shown, and how large its automaton is. */
export type CompiledPattern = readonly [string, string, number];

/** The keywords of a schema, by their names. Those that are not known here would not be enforced. */
export interface Keywords {
  readonly type?: Types;
  readonly enum?: readonly unknown[];
  /** A list of the one value, because that may be null. */
  readonly const?: readonly [unknown];
  readonly multipleOf?: number;
  readonly maximum?: number;
  readonly exclusiveMaximum?: number;
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maxLength?: number;
  readonly minLength?: number;
  readonly pattern?: CompiledPattern;
  readonly format?: string;
  readonly maxItems?: number;
  readonly minItems?: number;
  readonly uniqueItems?: boolean;
  readonly contains?: Index;
  readonly maxContains?: number;
  readonly minContains?: number;
  readonly prefixItems?: readonly Index[];
  readonly items?: Index;
  readonly unevaluatedItems?: Index;
  readonly maxProperties?: number;
  readonly minProperties?: number;
  readonly required?: readonly string[];
  readonly dependentRequired?: Readonly<Record<string, readonly string[]>>;
  readonly properties?: Readonly<Record<string, Index>>;
  readonly patternProperties?: readonly (readonly [CompiledPattern, Index])[];
  readonly additionalProperties?: Index;
  readonly propertyNames?: Index;
  readonly unevaluatedProperties?: Index;
  readonly dependentSchemas?: Readonly<Record<string, Index>>;
  readonly $ref?: Index;
  readonly allOf?: readonly Index[];
  readonly anyOf?: readonly Index[];
  readonly oneOf?: readonly Index[];
  readonly not?: Index;
  readonly if?: Index;
  readonly then?: Index;
  readonly else?: Index;
}

/** A set of types of JSON. */
export type Types = readonly string[];
