/** Many lines of a log at once, written as gateways write them. */
import { randomUUID } from 'node:crypto';
import type { Store } from '../../src/store/database.js';
import { ensureLogPartition, hourOf } from '../../src/store/log-partitions.js';
import { addLogWriter, databaseTime, writeLogs } from '../../src/store/log-writing.js';

export interface LogFlood {
  /** Writes so many lines of an endpoint, by so many gateways as there are. */
  write(lines: number): Promise<void>;
}

/** A stream reads so many lines of a gateway at a time: many of them write more. */
const WRITERS = 20;

export async function startLogFlood(store: Store, endpointId: string): Promise<LogFlood> {
  const writers = await Promise.all(
    Array.from({ length: WRITERS }, async () => ({ id: await addLogWriter(store, randomUUID()), number: 0 })),
  );
  return {
    write: async (lines) => {
      const at = await databaseTime(store);
      await ensureLogPartition(store, hourOf(at));
      await Promise.all(
        writers.map(async (writer) => {
          const entries = Array.from({ length: Math.ceil(lines / WRITERS) }, () => ({
            ...({
              at,
              number: ++writer.number,
              kind: 'output',
              level: 'info',
              endpointId,
              version: 1,
            } as const),
            ...{ requestId: null, fields: null, request: null },
            message: `line ${writer.number} of the gateway ${writer.id}, as long as lines are`,
          }));
          await writeLogs(store, writer.id, entries);
        }),
      );
    },
  };
}
