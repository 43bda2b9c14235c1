/** What goes between the sqlite driver and the process that has the file open. Arrays, because they are quick to write. */
import type { ServiceErrorKind } from '../service-error.js';

/** How a process is told what to open, as its first message. */
export interface OpenRequest {
  readonly path: string;
  readonly createIfMissing: boolean;
}

/**
 * What is asked for. Calls come with their payload: `read` is a query that must not write, and sees what was committed
 * before the transaction that is open; `tx-` is within that transaction.
 */
export type Operation =
  | 'query'
  | 'execute'
  | 'read'
  | 'tx-query'
  | 'tx-execute'
  | 'begin'
  | 'commit'
  | 'rollback'
  | 'test';

export type Request = readonly [id: number, operation: Operation, payload: string];

export type Answer =
  | readonly [
      id: number,
      kind: 'ok',
      text: string | undefined,
      rowsAffected: number,
      lastInsertId: bigint | null,
    ]
  | readonly [id: number, kind: ServiceErrorKind, message: string];
