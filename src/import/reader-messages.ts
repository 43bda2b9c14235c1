/** What `reader-child.ts` and the process it starts (`reader-process.ts`) say to each other. */
import type { ErrorCode } from '../errors.js';
import type { BundleLimits } from './bundle/read-bundle.js';
import type { ImportedApi, ImportedEndpoint } from './imported-api.js';

/** What to read. The next comes when the one before was answered. */
export interface ReadJob {
  /** A request body with a document in it, or a ZIP archive. */
  readonly kind: 'request' | 'bundle';
  /** Path of the file. */
  readonly file: string;
  readonly limits: BundleLimits;
}

/** The answer: some pieces and the end, or an error, which may come after pieces. */
export type ReadAnswer =
  | { readonly type: 'endpoints'; readonly endpoints: readonly ImportedEndpoint[] }
  | {
      readonly type: 'end';
      readonly fields: Fields;
      readonly api: Omit<ImportedApi, 'endpoints'>;
      /** Resident memory of the process, MiB. */
      readonly memoryMb: number;
    }
  /** Something in what was sent. */
  | { readonly type: 'refused'; readonly code: ErrorCode; readonly message: string }
  /** A fault of our own. */
  | { readonly type: 'failed'; readonly stack: string };

/** The members of a request body beside the document. */
export type Fields = Readonly<Record<string, unknown>>;
