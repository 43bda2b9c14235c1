/** What a connection to a file server can do, whatever its protocol; and which paths handlers may use on it. */
import { ServiceError } from '../service-error.js';

/** What there is in a folder. */
export interface FolderEntry {
  readonly name: string;
  readonly kind: 'file' | 'folder' | 'other';
  readonly size: number;
  readonly modified: Date | null;
}

/**
 * A connection, for one operation at a time. Paths are complete, as the server takes them. Every method rejects with a
 * ServiceError: `unavailable` when the connection is of no more use, `backend` when the server refused.
 */
export interface FileSession {
  /** The folder of the config as a complete path, without a slash at its end. */
  readonly root: string;
  readonly isOpen: boolean;
  /** The fingerprint of the server's key, when the protocol has one and nobody checked it. */
  readonly uncheckedKey?: string | undefined;
  /** One round trip. */
  check(): Promise<void>;
  /** @returns undefined when there is no such file */
  download(path: string, limitBytes: number): Promise<Buffer | undefined>;
  /** Replaces what is there; a file that breaks off is left as it is. */
  upload(path: string, content: Buffer): Promise<void>;
  /** Makes a folder; when that fails because it is there, or for another reason, nothing happens. */
  makeFolder(path: string): Promise<void>;
  /** Moves a file, over another one if there is one. */
  rename(from: string, to: string): Promise<void>;
  /** @returns whether there was such a file */
  remove(path: string): Promise<boolean>;
  /** @returns undefined when there is no such folder */
  list(path: string): Promise<FolderEntry[] | undefined>;
  /** Breaks off what is under way. */
  close(): void;
}

/** Opens a session; the signal breaks that off. @throws ServiceError `unavailable` */
export type OpenSession = (signal: AbortSignal) => Promise<FileSession>;

/** Why a server at `host:port` let nobody in, and other reasons that all protocols have. */
export const REASONS = {
  login: (where: string) => `the server at ${where} did not accept the username or the password`,
  folder: (where: string, path: string) => `the server at ${where} has no folder "${path}" (base_path)`,
  tooLarge: (limitBytes: number) => `the file is larger than the ${limitBytes} bytes a handler can get`,
} as const;

const MAX_PATH_LENGTH = 4096;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const CONTROL_CHARACTER = /[\u0000-\u001f\u007f]/;

/**
 * The segments of a path below the folder of the config; none for that folder itself.
 * @throws ServiceError `invalid` when the path could lead out of it, or could be taken for something else than a path
 */
export function pathSegments(path: string): string[] {
  const refuse = (reason: string): never => {
    throw new ServiceError('invalid', `args.path: ${reason}`);
  };
  if (path.length > MAX_PATH_LENGTH) refuse(`must have at most ${MAX_PATH_LENGTH} characters`);
  if (CONTROL_CHARACTER.test(path)) refuse('must not have control characters');
  if (/\p{Surrogate}/u.test(path)) refuse('must be Unicode text without lone surrogates');
  if (path.startsWith('/')) refuse('must not begin with a slash: it is below base_path');
  // To some servers a backslash is a slash.
  if (path.split(/[/\\]/).includes('..')) refuse('must not have ".." in it');
  return path.split('/').filter((segment) => segment !== '' && segment !== '.');
}
