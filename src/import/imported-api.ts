/** What an import brings, whether it came as an OpenAPI document or as a bundle. Pure data. */
import type { Dependencies } from '../dependencies.js';
import type { EndpointMethod } from '../endpoint-method.js';

/** A whole API, read and checked, before anything of it is stored. */
export interface ImportedApi {
  /** `info.title` of the document; without a document, the name in the bundle's manifest, or a stand-in. Never empty. */
  readonly title: string;
  readonly description: string | null;
  /** Common prefix of all paths as `normalizeBasePath` makes it; null when there is none. */
  readonly basePath: string | null;
  /** No two have the same method and route key. */
  readonly endpoints: readonly ImportedEndpoint[];
  /** Crates for all handlers of a bundle, perhaps none; null for a document and for a bundle that says nothing of crates. */
  readonly dependencies: Dependencies | null;
  /** What was left out or looks wrong, in words for the person who sent it. */
  readonly warnings: readonly string[];
  /** Handlers that could not be matched to an operation beyond doubt. */
  readonly problems: readonly MatchProblem[];
}

/** One endpoint of an imported API. */
export interface ImportedEndpoint {
  /** The operationId, else `METHOD /path`. Unique within the import. */
  readonly name: string;
  readonly method: EndpointMethod;
  /** As the document has it, relative to the base path. */
  readonly path: string;
  readonly description: string | null;
  /** A handler that compiles, takes the request apart and answers 501. */
  readonly generatedCode: string;
  /** The bundle's handler for it. */
  readonly handler: ImportedHandler | null;
}

/** A source file of a bundle. */
export interface ImportedHandler {
  /** Its place in the bundle, e.g. `handlers/list_pets.rs`. */
  readonly file: string;
  readonly code: string;
}

/** Why a handler of a bundle stands for no operation. */
export interface MatchProblem {
  /** Name of the operation concerned, if it is one. */
  readonly name: string | null;
  /** File of the handler concerned, if it is one. */
  readonly handler: string | null;
  readonly message: string;
}
