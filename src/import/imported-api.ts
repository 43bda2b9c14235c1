/** The result of reading an OpenAPI document or a bundle. */
import type { Dependencies } from '../model/crates.js';
import type {
  ImportedEndpoint,
  ImportedHandler,
  KeptDocument,
  MatchProblem,
  ServiceBinding,
} from '../model/imported-parts.js';
import type { ValidateMode } from '../model/policies/validate.js';
import type { Edition } from '../model/source-files.js';
import { generateHandler } from './codegen/generate-handler.js';
import type { Operation } from './openapi/document.js';
import type { ImportWarning } from './warnings.js';

/** A parsed and validated API. */
export interface ImportedApi {
  /** What was read. */
  readonly kind: 'document' | 'bundle';
  /** `info.title` of the document; without a document, the name in the bundle's manifest or a default. Never empty. */
  readonly title: string;
  readonly description: string | null;
  /** Common prefix of all paths, normalized by `normalizeBasePath`; null when there is none. */
  readonly basePath: string | null;
  /** No two have the same method and route key. */
  readonly endpoints: readonly ImportedEndpoint[];
  /**
   * Crates for all handlers of a bundle; null for a document, and for a bundle whose manifest has no `dependencies`.
   */
  readonly dependencies: Dependencies | null;
  /** The edition of all handlers of a bundle; left out where its manifest does not say it. */
  readonly edition?: Edition;
  /** Services that the handlers of a bundle use. */
  readonly bindings: readonly ServiceBinding[];
  /** Messages for users about parts that were left out or look wrong. */
  readonly warnings: readonly ImportWarning[];
  /** Whether requests are to be validated; unless it is said, endpoints keep what they have. */
  readonly validation?: ValidateMode;
  /** The document itself, for exports; null when there is none that is kept. */
  readonly document: KeptDocument | null;
  /** Handlers whose operation is missing or ambiguous. */
  readonly problems: readonly MatchProblem[];
  /** Contents of the files of handlers, by their digests. */
  readonly contents: ReadonlyMap<string, Uint8Array>;
}

/**
 * The endpoint of an operation.
 * @param title of the API, for the generated handler
 */
export function endpointOf(
  operation: Operation,
  title: string,
  handler: ImportedHandler | null,
): ImportedEndpoint {
  const { name, method, path, description, validate } = operation;
  const generatedCode = generateHandler(operation, title);
  return {
    name,
    method,
    path,
    description,
    generatedCode,
    handler,
    ...(validate !== undefined && { validate }),
  };
}
