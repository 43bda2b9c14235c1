/**
 * The turns of applies. All compile beside each other; what follows, from the start of handlers to the end, only one
 * does at a time. Next is one of who has had no turn for longest, in the order in which they were ready.
 */
import type { Scope } from '../model/permission.js';
import type { Apply, ApplyAttempt, ApplyState } from './applies.js';
import { type Store, violatedConstraint } from './database.js';
import { visible } from './visibility.js';

/** SQL, of a row: who takes turns with others. A user and their tokens are the same one; of nobody, an address is. */
export function ownerOfApply(row: string): string {
  return `coalesce(${row}.actor->>'user_id', ${row}.actor->>'id', ${row}.actor->>'address', ${row}.actor->>'kind', '')`;
}

/** Those that wait, the next one first. Turns of longer ago do not count. */
const IN_ORDER = `
  SELECT waiting.id, row_number() OVER (ORDER BY (
           SELECT max(turn_at) FROM applies AS had
            WHERE turn_at > clock_timestamp() - interval '1 hour' AND ${ownerOfApply('had')} = ${ownerOfApply('waiting')}
         ) NULLS FIRST, ready_at, id) AS place
    FROM applies AS waiting
   WHERE finished_at IS NULL AND turn_at IS NULL AND ready_at IS NOT NULL`;

/** What an apply does in its turn. A worker of the version before does it without one. */
const STATES_OF_A_TURN: readonly ApplyState[] = ['preparing', 'committing', 'converging', 'undoing'];

/** @returns whether it has its turn: now, or since an attempt before */
export async function takeTurn(store: Store, { id, attempt }: ApplyAttempt): Promise<boolean> {
  try {
    const { rowCount } = await store.knex.raw<{ rowCount: number }>(
      `WITH in_order AS (${IN_ORDER})
       UPDATE applies SET turn_at = coalesce(turn_at, clock_timestamp())
        WHERE id = :id AND attempt = :attempt AND finished_at IS NULL AND (turn_at IS NOT NULL OR (
          NOT EXISTS (SELECT FROM applies WHERE finished_at IS NULL AND id <> :id AND (
            turn_at IS NOT NULL OR state IN (${STATES_OF_A_TURN.map((state) => `'${state}'`).join(', ')})))
          AND id = (SELECT id FROM in_order WHERE place = 1)))`,
      { id, attempt },
    );
    return rowCount > 0;
  } catch (thrown) {
    // Another one was faster.
    if (violatedConstraint(thrown) === 'applies_turn') return false;
    throw thrown;
  }
}

/** An apply that has its turn earlier. */
export type EarlierApply = Pick<Apply, 'id' | 'stack' | 'state' | 'actor'>;

/** The visible ones of those that have their turn before one that has not had its own, the first one first. */
export async function earlierApplies(store: Store, id: string, scope: Scope): Promise<EarlierApply[]> {
  const earlier = store.knex.raw(
    `WITH in_order AS (${IN_ORDER})
     SELECT applies.id, place FROM applies LEFT JOIN in_order USING (id)
      WHERE finished_at IS NULL AND applies.id <> :id
        AND (turn_at IS NOT NULL OR place < coalesce((SELECT place FROM in_order WHERE id = :id), 'infinity'::float8))
        AND NOT EXISTS (SELECT FROM applies WHERE id = :id AND (turn_at IS NOT NULL OR finished_at IS NOT NULL))`,
    { id },
  );
  const query = store
    .knex('applies')
    .join(store.knex.raw('(?) AS earlier', [earlier]), 'earlier.id', 'applies.id')
    .orderByRaw('place NULLS FIRST')
    .select<EarlierApply[]>('applies.id', 'stack', 'state', 'actor');
  return visible(query, 'apply', scope);
}

/** An apply that no worker has, as its job names it. */
export type QueuedApply = ApplyAttempt & Pick<Apply, 'request_id'>;

/** The apply that was queued first, of each owner for whom no worker does anything, if that was so long ago. */
export async function appliesOfWaitingOwners(
  store: Store,
  sinceMs: number,
  limit: number,
): Promise<QueuedApply[]> {
  const { rows } = await store.knex.raw(
    `SELECT id, attempt, request_id FROM (
       SELECT DISTINCT ON (${ownerOfApply('applies')}) applies.* FROM applies
        WHERE finished_at IS NULL AND worker_id IS NULL
          AND queued_at < clock_timestamp() - :sinceMs * interval '1 ms'
          AND ${ownerOfApply('applies')} NOT IN (
            SELECT ${ownerOfApply('busy')} FROM applies AS busy WHERE finished_at IS NULL AND worker_id IS NOT NULL)
        ORDER BY ${ownerOfApply('applies')}, queued_at) AS firsts
      ORDER BY queued_at LIMIT :limit`,
    { sinceMs, limit },
  );
  return rows;
}

/** The apply that has its turn, if no worker has it: all others wait for it. */
export async function lostTurns(store: Store, sinceMs: number): Promise<QueuedApply[]> {
  return store
    .knex('applies')
    .whereNull('finished_at')
    .whereNotNull('turn_at')
    .whereNull('worker_id')
    .whereRaw("queued_at < clock_timestamp() - ? * interval '1 ms'", [sinceMs])
    .select<QueuedApply[]>('id', 'attempt', 'request_id');
}

/** @returns how many of the same owner have not ended */
export async function countUnfinishedOf(store: Store, actor: Apply['actor']): Promise<number> {
  const { rows } = await store.knex.raw<{ rows: { count: number }[] }>(
    `SELECT count(*)::int AS count FROM applies, (SELECT ?::jsonb AS actor) AS request
      WHERE finished_at IS NULL AND ${ownerOfApply('applies')} = ${ownerOfApply('request')}`,
    [JSON.stringify(actor)],
  );
  return rows[0]?.count ?? 0;
}

/** One that is before a new apply: it has its turn, waits for it, or is of the same stack. */
export async function earlierThanNew(store: Store, stack: string): Promise<string | undefined> {
  return (
    await store
      .knex('applies')
      .whereNull('finished_at')
      .where((query) => query.whereNotNull('turn_at').orWhereNotNull('ready_at').orWhere({ stack }))
      .orderByRaw('turn_at NULLS LAST, ready_at NULLS LAST, created_at')
      .first<{ id: string } | undefined>('id')
  )?.id;
}
