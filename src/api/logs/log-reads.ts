/**
 * Reads the log for somebody. What may read much more than it finds takes turns, so that connections to the database
 * stay free for all else; and a search ends after some time.
 */
import { AppError } from '../../errors.js';
import { isStatementTimeout, type Store, withinTime } from '../../store/database.js';
import {
  type LogFilter,
  type LogPosition,
  type LogRow,
  listLogs,
  logsOfWriter,
  type WriterPosition,
} from '../../store/logs.js';
import type { Page, Place } from '../../store/pages.js';
import { AnswerTurns } from '../response/answer-turns.js';

/** Each has a connection to the database, of which `web` has 16. Most take milliseconds, so nobody waits for long. */
export const SEARCH_TURNS = new AnswerTurns({
  ...{ what: 'searches of the log', places: 3, beyond: 3 },
  patienceMs: 200,
});
/** Longest time of a search, milliseconds. */
const LONGEST_MS = 20_000;
/** A live log that has more entries to read is no longer live: it was cut off. */
const LIVE_ENTRIES = 10_000;

export class LogReads {
  /** @param owner whose turns it takes */
  constructor(
    private readonly store: Store,
    private readonly owner: string,
    private readonly longestMs = LONGEST_MS,
  ) {}

  /** Entries, the newest first. @throws AppError busy */
  async list(
    filter: LogFilter,
    limit: number,
    after: Place | undefined,
    upTo?: LogPosition,
  ): Promise<Page<LogRow>> {
    if (!isSearch(filter)) return listLogs(this.store, filter, limit, after, upTo);
    return SEARCH_TURNS.run(this.owner, () =>
      withinTime(this.store, this.longestMs, (store) => listLogs(store, filter, limit, after, upTo)),
    ).catch((thrown: unknown) => {
      throw isStatementTimeout(thrown) ? this.#tookTooLong(thrown) : thrown;
    });
  }

  /** The entries of one writer, in their order. @throws AppError busy */
  async ofWriter(
    filter: LogFilter,
    writer: number,
    after: WriterPosition,
    upTo: WriterPosition,
    limit: number,
  ): Promise<LogRow[]> {
    const read = () => logsOfWriter(this.store, filter, writer, after, upTo, limit);
    return upTo.number - after.number > LIVE_ENTRIES ? SEARCH_TURNS.run(this.owner, read) : read();
  }

  #tookTooLong(cause: unknown): AppError {
    const message =
      `The search of the log took longer than ${this.longestMs / 1_000} s; ` +
      'narrow it, to an endpoint, or with since and until to a shorter time';
    return new AppError('busy', message, {}, { cause });
  }
}

/** Whether it may read much more than it finds: there are indexes of the others. */
function isSearch(filter: LogFilter): boolean {
  const { requestId, traceId, endpointId, scope } = filter;
  if (requestId !== undefined || traceId !== undefined) return false;
  const { search, level, status, kind, version, domain, collectionId } = filter;
  const isPart = [search, level, status, kind, version, domain, collectionId].some(
    (one) => one !== undefined,
  );
  return isPart || (scope !== undefined && endpointId === undefined);
}
