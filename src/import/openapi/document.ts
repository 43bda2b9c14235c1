/** The parts of an OpenAPI document that an import needs, with references resolved. Plain data. */
import type { EndpointMethod } from '../../model/endpoint-method.js';
import type { KeptDocument } from '../../model/imported-parts.js';
import type { ImportWarning } from '../warnings.js';

export interface OpenApiDocument {
  readonly title: string;
  readonly version: string;
  readonly description: string | null;
  /** Path of the first server's URL, normalized by `normalizeBasePath`. */
  readonly basePath: string | null;
  readonly operations: readonly Operation[];
  /** The document itself, converted if it was one of Swagger; null for one that is not kept. */
  readonly kept: KeptDocument | null;
  /** Names operations and other parts that were left out. */
  readonly warnings: readonly ImportWarning[];
}

export interface Operation {
  readonly operationId: string | null;
  /** The operationId, else `METHOD /path`. */
  readonly name: string;
  readonly method: EndpointMethod;
  readonly path: string;
  /** Summary, else description. */
  readonly description: string | null;
  /**
   * All parameters of the path in its order, described or not, then those of the path item, overridden by the
   * operation's own. Unique, and without the headers that OpenAPI excludes.
   */
  readonly parameters: readonly Parameter[];
  readonly body: RequestBody | null;
  /** The policy `validate` of its requests, as JSON; none when it is not wanted, or there is nothing to check. */
  readonly validate?: string;
}

/** The types that a generated handler distinguishes; `any` when the document has no type or several. */
export type ValueType = 'string' | 'integer' | 'number' | 'boolean' | 'array' | 'object' | 'any';

/** How values are written as text (OpenAPI: style). `text` is one text as it stands: of another media type, say. */
export type TextStyle =
  | 'simple'
  | 'label'
  | 'matrix'
  | 'form'
  | 'spaceDelimited'
  | 'pipeDelimited'
  | 'deepObject'
  | 'text';

/** At least one. */
export type AllowedValues =
  | { readonly type: 'string'; readonly values: readonly string[] }
  | { readonly type: 'integer'; readonly values: readonly number[] };

/** A value that is sent as text. */
export interface TextValue {
  readonly name: string;
  readonly required: boolean;
  readonly type: ValueType;
  /** Type of an array's items. */
  readonly itemType: ValueType;
  readonly style: TextStyle;
  /** Whether each item of an array, or member of an object, is written on its own. */
  readonly explode: boolean;
  /** Names of an object's members, as far as they are described. */
  readonly memberNames?: readonly string[];
  /** The only values that a string or integer, or an item of an array of these, may have. */
  readonly allowed?: AllowedValues;
}

export interface Parameter extends TextValue {
  readonly in: 'path' | 'query' | 'header' | 'cookie';
}

export interface FormField extends TextValue {
  /** Sent as bytes with a file name. An array is several files. */
  readonly isFile: boolean;
}

export interface RequestBody {
  readonly required: boolean;
  /** The media type a handler should expect: JSON when it is offered, else the first. */
  readonly mediaType: string;
  /** Type of a JSON body; `any` for other media types. */
  readonly type: ValueType;
  /** Members of a JSON object, including those through `allOf`; empty when none are described. */
  readonly members: readonly Member[];
  /** Fields of a form, when they are described. */
  readonly fields?: readonly FormField[];
}

export interface Member {
  readonly name: string;
  readonly required: boolean;
  readonly nullable: boolean;
  readonly type: ValueType;
  /** The only values that a string or integer, or an item of an array of these, may have. */
  readonly allowed?: AllowedValues;
}
