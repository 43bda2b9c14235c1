/**
 * The log as it is written. What each gateway writes becomes visible in its order; so a position that names for each
 * gateway the last entry which was read misses none, and repeats none, whichever way the client came by it.
 */
import { ALL_LOGS } from '../../store/log-writing.js';
import {
  type LogFilter,
  type LogPosition,
  type LogRow,
  logPosition,
  type WriterPosition,
} from '../../store/logs.js';
import type { ApiDependencies } from '../api-dependencies.js';
import { event, eventId, KEEPALIVE, KEEPALIVE_MS } from '../response/event-stream.js';
import type { LogReads } from './log-reads.js';
import { presentEntry } from './logs.schema.js';
import { positionBehind, positionsWithin, readOf, textOf } from './position.js';

/** Entries of one gateway that are read at a time. */
const READ_AT_ONCE = 500;

/**
 * The entries after a position; without one, the newest that there are and those that come. The position is sent first
 * of all, and when it moves without an entry for the client: one that is cut off continues from there.
 * @param newest how many that is
 */
export async function* logEvents(
  { store, changes, log }: Pick<ApiDependencies, 'store' | 'changes'> & { readonly log: LogReads },
  filter: LogFilter,
  after: LogPosition | undefined,
  newest: number,
  closed: AbortSignal,
): AsyncGenerator<string, undefined, void> {
  let seen = after ?? (await logPosition(store));
  const newestRows = after ? [] : (await log.list(filter, newest, undefined, seen)).rows.toReversed();
  const [first, ...positions] = positionsWithin(newestRows, seen);
  let sent = first ?? textOf(seen);
  let sentAt = performance.now();
  let unreadFrom = Number.POSITIVE_INFINITY;
  // The newest are sent in one piece: they are there at once.
  let newestEvents = eventId(sent);
  for (const [place, row] of newestRows.entries()) {
    sent = positions[place] ?? sent;
    newestEvents += event('entry', sent, presentEntry(row));
  }
  yield newestEvents;
  for (;;) {
    const read = async () => {
      const written = await logPosition(store);
      return hasMore(written, seen) ? written : undefined;
    };
    const idle = KEEPALIVE_MS - (performance.now() - sentAt);
    const written = await changes.waitFor('log', ALL_LOGS, Math.max(idle, 0), read, closed);
    if (written) {
      const { rows, reached, unread } = await readUpTo(log, filter, seen, written);
      const passed = new Map(seen);
      for (const [place, row] of rows.entries()) {
        passed.set(row.writer_id, positionBehind(row));
        sent = textOf(passed, Math.min(unread, rows[place + 1]?.at.getTime() ?? unread));
        sentAt = performance.now();
        yield event('entry', sent, presentEntry(row));
      }
      [seen, unreadFrom] = [reached, unread];
    }
    if (performance.now() - sentAt < KEEPALIVE_MS) continue;
    const now = textOf(seen, unreadFrom);
    sentAt = performance.now();
    yield now === sent ? KEEPALIVE : eventId(now);
    sent = now;
  }
}

/** What was read. */
interface ReadEntries {
  /** Entries in the order of their times. */
  readonly rows: LogRow[];
  /** The position behind them. */
  readonly reached: LogPosition;
  /** No entry that is behind them and was written is older. */
  readonly unread: number;
}

/** Reads the next entries. */
async function readUpTo(
  log: LogReads,
  filter: LogFilter,
  seen: LogPosition,
  written: LogPosition,
): Promise<ReadEntries> {
  let unread = Number.POSITIVE_INFINITY;
  // Gateways that are gone with all of their entries are forgotten.
  const reached = new Map(written);
  const read = async ([writer, upTo]: readonly [number, WriterPosition]) => {
    const from = readOf(seen, writer);
    if (!isBehind(upTo, from)) return [];
    const rows = await log.ofWriter(filter, writer, from, upTo, READ_AT_ONCE);
    const last = rows.at(READ_AT_ONCE - 1);
    if (last) {
      reached.set(writer, positionBehind(last));
      unread = Math.min(unread, last.at.getTime());
    }
    return rows;
  };
  const rows = (await Promise.all([...written].map(read))).flat();
  return { rows: rows.sort((one, other) => one.at.getTime() - other.at.getTime()), reached, unread };
}

function hasMore(written: LogPosition, seen: LogPosition): boolean {
  return [...written].some(([writer, upTo]) => isBehind(upTo, readOf(seen, writer)));
}

/** A writer that is not named in a position may have nothing since its time. */
function isBehind(upTo: WriterPosition, from: WriterPosition): boolean {
  return upTo.number > from.number && upTo.at >= from.at;
}
