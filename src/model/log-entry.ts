/** Entries of the log: what handlers say, and what became of requests. */

/** The levels of entries, with the numbers they are stored as. */
export const LEVELS = { trace: 10, debug: 20, info: 30, warn: 40, error: 50 } as const;
export type Level = keyof typeof LEVELS;
export const LEVEL_NAMES = Object.keys(LEVELS) as readonly Level[];

/** `output`: what a handler says; `request`: what became of a request. */
export const KINDS = ['output', 'request'] as const;
export type Kind = (typeof KINDS)[number];

/** What an entry of the kind `request` has besides. */
export interface RequestOutcome {
  readonly method: string;
  readonly route: string;
  /** The path without the query. */
  readonly path: string;
  readonly status: number;
  readonly durationMs: number;
  /** Bytes in the body of the response. */
  readonly bytes: number;
  readonly clientIp: string;
  /** Trace id of W3C Trace Context: 32 hexadecimal digits. */
  readonly traceId: string;
}

/** Key-values of an entry. */
export type LogFields = Readonly<Record<string, string | number | boolean>>;

/**
 * When the entries of an hour take this part of what they may, those that are not important begin to be left out: of
 * endpoints that have many.
 */
export const CROWDED = 0.5;

/** What is kept before all else: errors, requests that have failed, and what the gateway says of the log itself. */
export function isImportant({ level, fields }: Pick<LogEntry, 'level' | 'fields'>): boolean {
  return level === 'error' || fields?.['target'] === 'gateway';
}

/** A new entry. */
export interface LogEntry {
  /** Milliseconds since 1970, as this machine has them. */
  readonly at: number;
  readonly kind: Kind;
  readonly level: Level;
  readonly endpointId: string;
  readonly version: number | null;
  readonly requestId: string | null;
  readonly message: string;
  readonly fields: LogFields | null;
  readonly request: RequestOutcome | null;
}
