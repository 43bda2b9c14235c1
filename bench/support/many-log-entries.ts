/** A log of a day that is as long as one likes, written as a gateway writes it. */
import { randomUUID } from 'node:crypto';
import { openDatabase } from '../../src/store/database.js';
import { ensureLogPartition, hourOf } from '../../src/store/log-partitions.js';
import { addLogWriter, writeLogs } from '../../src/store/log-writing.js';

const BATCH = 10_000;
/** Over which the entries are spread, the last one now. */
const HOURS = 24;
const HOUR_MS = 3_600_000;

interface Entries {
  readonly count: number;
  /** Which the entries are of in turn. */
  readonly endpointIds: readonly string[];
}

/** Writes lines of handlers, each of a request of its own; resolves with the ids of some requests, evenly spread. */
export async function writeManyLogEntries(
  databaseUrl: string,
  { count, endpointIds }: Entries,
): Promise<string[]> {
  const store = openDatabase(databaseUrl, () => undefined);
  const requestIds: string[] = [];
  try {
    const begin = Date.now() - HOURS * HOUR_MS;
    for (let hour = 0; hour <= HOURS; hour++) await ensureLogPartition(store, hourOf(begin + hour * HOUR_MS));
    // Last: one that has written nothing, and is of no node, is removed.
    const writer = await addLogWriter(store, randomUUID());
    for (let first = 1; first <= count; first += BATCH) {
      const entries = Array.from({ length: BATCH }, (_, place) => ({
        number: first + place,
        at: Math.round(begin + ((first + place) / count) * HOURS * HOUR_MS),
        kind: 'output' as const,
        level: 'info' as const,
        endpointId: endpointIds[place % endpointIds.length] ?? '',
        version: 1,
        requestId: randomUUID(),
        message: `a line of some length, number ${first + place}`,
        request: null,
        fields: { target: 'handler' },
      }));
      requestIds.push(entries[0]?.requestId ?? '');
      await writeLogs(store, writer, entries);
    }
  } finally {
    await store.close();
  }
  return requestIds;
}
