/**
 * The log as it is written. What each gateway writes becomes visible in its order; so a position that names for each
 * gateway the last entry which was read misses none, and repeats none, whichever way the client came by it.
 */
import { AppError } from '../../errors.js';
import { ALL_LOGS } from '../../store/log-writing.js';
import {
  type LogFilter,
  type LogPosition,
  type LogRow,
  listLogs,
  logPosition,
  logsOfWriter,
  type WriterPosition,
} from '../../store/logs.js';
import type { ApiDependencies } from '../api-dependencies.js';
import { event, KEEPALIVE, KEEPALIVE_MS } from '../event-stream.js';
import { presentEntry } from './schema.js';

/** Entries of one gateway that are read at a time. */
const READ_AT_ONCE = 500;
const BEGINNING: WriterPosition = { number: 0, at: 0 };

/**
 * The entries after a position; without one, the newest that there are and those that come.
 * @param newest how many that is
 */
export async function* logEvents(
  { store, changes }: Pick<ApiDependencies, 'store' | 'changes'>,
  filter: LogFilter,
  after: LogPosition | undefined,
  newest: number,
  closed: AbortSignal,
): AsyncGenerator<string, undefined, void> {
  let seen = after ?? (await logPosition(store));
  if (!after && newest > 0) {
    const { rows } = await listLogs(store, filter, newest, undefined, seen);
    for (const row of rows.toReversed()) yield entryEvent(row, seen);
  }
  for (;;) {
    const read = async () => {
      const written = await logPosition(store);
      return hasMore(written, seen) ? written : undefined;
    };
    const written = await changes.waitFor('log', ALL_LOGS, KEEPALIVE_MS, read, closed);
    if (!written) {
      yield KEEPALIVE;
      continue;
    }
    const { rows, reached } = await readUpTo(store, filter, seen, written);
    const passed = new Map(seen);
    for (const row of rows) {
      passed.set(row.writer_id, positionOf(row));
      yield entryEvent(row, passed);
    }
    seen = reached;
  }
}

/** The next entries, in the order of their times, and the position behind them. */
async function readUpTo(
  store: ApiDependencies['store'],
  filter: LogFilter,
  seen: LogPosition,
  written: LogPosition,
): Promise<{ readonly rows: LogRow[]; readonly reached: LogPosition }> {
  // Gateways that are gone with all of their entries are forgotten.
  const reached = new Map(written);
  const read = async ([writer, upTo]: readonly [number, WriterPosition]) => {
    const from = seen.get(writer) ?? BEGINNING;
    if (upTo.number <= from.number) return [];
    const rows = await logsOfWriter(store, filter, writer, from, upTo, READ_AT_ONCE);
    const last = rows.at(READ_AT_ONCE - 1);
    if (last) reached.set(writer, positionOf(last));
    return rows;
  };
  const rows = (await Promise.all([...written].map(read))).flat();
  return { rows: rows.sort((one, other) => one.at.getTime() - other.at.getTime()), reached };
}

function positionOf({ number, at }: LogRow): WriterPosition {
  return { number, at: at.getTime() };
}

function hasMore(written: LogPosition, seen: LogPosition): boolean {
  return [...written].some(([writer, { number }]) => number > (seen.get(writer) ?? BEGINNING).number);
}

function entryEvent(row: LogRow, position: LogPosition): string {
  return event('entry', textOf(position), presentEntry(row));
}

/** e.g. `3.1200.1764000000000_4.17.1764000000400`: writer, number and time. */
function textOf(position: LogPosition): string {
  return [...position].map(([writer, { number, at }]) => `${writer}.${number}.${at}`).join('_');
}

/** @throws AppError invalid_input when it is none */
export function readPosition(text: string): LogPosition {
  const parts = text.split('_').map((part) => /^(\d{1,9})\.(\d{1,15})\.(\d{1,15})$/.exec(part));
  return new Map(
    parts.map((part) => {
      if (!part)
        throw new AppError('invalid_input', 'Last-Event-ID: is none of an entry; leave it out to begin anew');
      const [writer, number, at] = part.slice(1).map(Number) as [number, number, number];
      return [writer, { number, at }];
    }),
  );
}
