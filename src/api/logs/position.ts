/**
 * Positions in the log as texts, which are the ids of events: how far each gateway has been read. Gateways that have
 * written nothing for long are not named, so that an id fits into a header however many there have been.
 */
import { AppError } from '../../errors.js';
import { type LogPosition, type LogRow, logPosition, type WriterPosition } from '../../store/logs.js';
import type { ApiDependencies } from '../api-dependencies.js';

/** The number in place of a writer's: all that are not named have been read up to this time. */
const OTHERS = 0;
/** Who has written nothing for so long is not named. No gateway keeps an entry for longer before it writes it. */
const NAMED_MS = 3 * 3_600_000;
const BEGINNING: WriterPosition = { number: 0, at: 0 };

/** How far a writer has been read. */
export function readOf(position: LogPosition, writer: number): WriterPosition {
  return position.get(writer) ?? position.get(OTHERS) ?? BEGINNING;
}

/** Where a writer has been read up to this entry. */
export function positionBehind({ number, at }: LogRow): WriterPosition {
  return { number, at: at.getTime() };
}

/**
 * The positions before and behind each of the newest entries, when they are told one by one.
 * @param rows the newest entries up to `end`, the oldest first
 * @returns one more than there are rows
 */
export function positionsWithin(rows: readonly LogRow[], end: LogPosition): string[] {
  const position = new Map(end);
  const texts: string[] = [textOf(end)];
  for (const { writer_id, number, at } of rows.toReversed()) {
    // All that this writer has written since is among the rows behind it.
    position.set(writer_id, { number: number - 1, at: at.getTime() });
    texts.push(textOf(position, at.getTime()));
  }
  return texts.reverse();
}

/**
 * e.g. `0.0.1763989200000_3.1200.1764000000000_4.17.1764000000400`: writer, number and time.
 * @param unread no entry that was written and is behind the position is older
 */
export function textOf(position: LogPosition, unread = Number.POSITIVE_INFINITY): string {
  const named = [...position].filter(([writer]) => writer !== OTHERS);
  const newest = Math.max(NAMED_MS, ...named.map(([, { at }]) => at));
  // What others have written since then is not read yet.
  const from = position.get(OTHERS)?.at ?? Math.min(newest - NAMED_MS, unread);
  const parts = named.filter(([, { at }]) => at >= from);
  return [[OTHERS, { number: 0, at: from }] as const, ...parts]
    .map(([writer, { number, at }]) => `${writer}.${number}.${at}`)
    .join('_');
}

/** @throws AppError invalid_input when it is none, or of another log */
export async function readPosition(
  { store }: Pick<ApiDependencies, 'store'>,
  text: string,
): Promise<LogPosition> {
  const position = new Map<number, WriterPosition>();
  for (const part of text.split('_')) {
    const [, ...digits] = /^(\d{1,9})\.(\d{1,15})\.(\d{1,15})$/.exec(part) ?? [];
    const [writer, number, at] = digits.map(Number);
    if (writer === undefined || number === undefined || at === undefined || position.has(writer))
      throw none();
    position.set(writer, { number, at });
  }
  for (const [writer, { number }] of await logPosition(store)) {
    if ((position.get(writer)?.number ?? 0) > number) throw none();
  }
  return position;
}

function none(): AppError {
  return new AppError('invalid_input', 'Last-Event-ID: is none of an entry; leave it out to begin anew');
}
