/** What this product needs to know of an OpenAPI document, references resolved. Pure data. */
import type { EndpointMethod } from '../../endpoint-method.js';

export interface OpenApiDocument {
  readonly title: string;
  readonly version: string;
  readonly description: string | null;
  /** Path of the first server's URL, as `normalizeBasePath` makes it. */
  readonly basePath: string | null;
  readonly operations: readonly Operation[];
  /** Operations and other parts that were left out, each named. */
  readonly warnings: readonly string[];
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
   * All of the path, in its order, whether or not they are described; then those of the path item, overridden by the
   * operation's own. No two are the same, and none is a header that OpenAPI says is no parameter.
   */
  readonly parameters: readonly Parameter[];
  readonly body: RequestBody | null;
}

/** The types that a generated handler tells apart; `any` when the document does not say or says several. */
export type ValueType = 'string' | 'integer' | 'number' | 'boolean' | 'array' | 'object' | 'any';

/** How a list is written, when it is not `1,2`; or an object, when it is `name[key]=value`. */
export type TextStyle = 'spaceDelimited' | 'pipeDelimited' | 'repeated' | 'deepObject';

/** A value that arrives as text. */
export interface TextValue {
  readonly name: string;
  readonly required: boolean;
  readonly type: ValueType;
  /** Of its items, for an array. */
  readonly itemType: ValueType;
  readonly style?: TextStyle;
  /** The document's style, when it is one that is not taken apart: a handler gets what text there is of this name. */
  readonly rawStyle?: string;
}

export interface Parameter extends TextValue {
  readonly in: 'path' | 'query' | 'header' | 'cookie';
}

/** A field of a form. */
export interface FormField extends TextValue {
  /** Sent with a name of a file, and as bytes. An array is several files. */
  readonly isFile: boolean;
}

export interface RequestBody {
  readonly required: boolean;
  /** The media type a handler should expect: JSON when it is offered, else the first. */
  readonly mediaType: string;
  /** Type of a JSON body; `any` for other media types. */
  readonly type: ValueType;
  /** Members of a JSON object (through `allOf` too); empty when none are described. */
  readonly members: readonly Member[];
  /** Fields of a form, when they are described. */
  readonly fields?: readonly FormField[];
}

export interface Member {
  readonly name: string;
  readonly required: boolean;
  readonly nullable: boolean;
  readonly type: ValueType;
}
