/** Parts of an imported API, as they are read and as they are stored. */
import type { EndpointMethod } from './endpoint-method.js';
import type { FileRefs } from './source-files.js';

export interface ImportedEndpoint {
  /** The operationId, else `METHOD /path`. Unique within the import. */
  readonly name: string;
  readonly method: EndpointMethod;
  /** Relative to the base path, as the document has it. */
  readonly path: string;
  readonly description: string | null;
  /** A handler that compiles, parses the request and answers 501. */
  readonly generatedCode: string;
  /** The bundle's handler for this endpoint. */
  readonly handler: ImportedHandler | null;
  /** The policy `validate`, as JSON; none when it is not wanted, or there is nothing to check. */
  readonly validate?: string;
}

/** A source file of a bundle. */
export interface ImportedHandler {
  /** Path in the bundle, e.g. `handlers/list_pets.rs`. */
  readonly file: string;
  readonly code: string;
  /** The path of the code among the files; null: it has none beside it. */
  readonly entry: string | null;
  readonly files: FileRefs | null;
}

/** A service that exists already, and the name that handlers use. */
export interface ServiceBinding {
  readonly poolId: string;
  /** The name of the service. */
  readonly service: string;
}

/** A document, stored for exports. */
export interface KeptDocument {
  /** SHA-256 of its JSON, in hex. */
  readonly sha256: string;
  /** Its JSON, compressed. */
  readonly gzip: Uint8Array;
}

/** Why a handler of a bundle is not used. */
export interface MatchProblem {
  /** The operation, if the problem concerns exactly one. */
  readonly name: string | null;
  /** The handler's file, if the problem concerns exactly one. */
  readonly handler: string | null;
  readonly message: string;
}
