/** Messages between `reader-child.ts` and the child process that it starts (`reader-process.ts`). */
import type { ErrorCode } from '../errors.js';
import type { ImportedEndpoint } from '../model/imported-parts.js';
import type { ValidateMode } from '../model/policies/validate.js';
import type { FolderPart } from './folder/parts.js';
import type { FolderToRead } from './folder/read-folder.js';
import type { ImportedApi } from './imported-api.js';
import type { ImportLimits } from './limits.js';

/** Sent to the child, one at a time: the next job follows the answer to the one before. */
export interface ReadJob {
  /**
   * `request`: a JSON body that contains a document; `bundle`: a ZIP archive; `folder`: files that describe an
   * installation.
   */
  readonly kind: 'request' | 'bundle' | 'folder';
  /** Path of the file. */
  readonly file: string;
  readonly limits: ImportLimits;
  /** Whether requests are to be validated as the document says. */
  readonly validation: ValidateMode;
  /** What is read besides, when it is a folder. */
  readonly folder?: Omit<FolderToRead, 'file'>;
}

/** The answer: endpoints or parts of a folder in chunks and the end, or an error, which may follow chunks. */
export type ReadAnswer =
  | { readonly type: 'part'; readonly part: FolderPart }
  | { readonly type: 'folder-end'; readonly memoryMb: number }
  | { readonly type: 'endpoints'; readonly endpoints: readonly ImportedEndpoint[] }
  | {
      readonly type: 'contents';
      readonly contents: readonly (readonly [digest: string, content: Uint8Array])[];
    }
  | {
      readonly type: 'end';
      readonly fields: Fields;
      readonly api: Omit<ImportedApi, 'endpoints' | 'contents'>;
      /** Resident memory of the process, MiB. */
      readonly memoryMb: number;
    }
  /** The input is invalid. */
  | {
      readonly type: 'invalid';
      readonly code: ErrorCode;
      readonly message: string;
      readonly details?: unknown;
    }
  /** An internal error. */
  | { readonly type: 'failed'; readonly stack: string };

/** The members of a request body beside the document. */
export type Fields = Readonly<Record<string, unknown>>;
