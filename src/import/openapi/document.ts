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

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header' | 'cookie';
  readonly required: boolean;
  readonly type: ValueType;
  /** Of its items, for an array. */
  readonly itemType: ValueType;
}

export interface RequestBody {
  readonly required: boolean;
  /** The media type a handler should expect: JSON when it is offered, else the first. */
  readonly mediaType: string;
  /** Type of a JSON body; `any` for other media types. */
  readonly type: ValueType;
  /** Members of a JSON object (through `allOf` too); empty when none are described. */
  readonly members: readonly Member[];
}

export interface Member {
  readonly name: string;
  readonly required: boolean;
  readonly nullable: boolean;
  readonly type: ValueType;
}
