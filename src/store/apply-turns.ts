/**
 * The turns of applies. All compile beside each other; what follows, from the start of handlers to the end, only one
 * does at a time. Next is one of who has had no turn for longest, in the order in which they were ready.
 */
import type { Scope } from '../model/permission.js';
import type { Apply, ApplyAttempt } from './applies.js';
import { type Store, violatedConstraint } from './database.js';
import { visible } from './visibility.js';

/** SQL, of a row: who takes turns with others. A user and their tokens are the same one. */
const OWNER = (row: string) =>
  `coalesce(${row}.actor->>'user_id', ${row}.actor->>'id', ${row}.actor->>'kind', '')`;

/** Those that wait, the next one first. Turns of longer ago do not count. */
const IN_ORDER = `
  SELECT waiting.id, row_number() OVER (ORDER BY (
           SELECT max(turn_at) FROM applies AS had
            WHERE turn_at > clock_timestamp() - interval '1 hour' AND ${OWNER('had')} = ${OWNER('waiting')}
         ) NULLS FIRST, ready_at, id) AS place
    FROM applies AS waiting
   WHERE finished_at IS NULL AND turn_at IS NULL AND ready_at IS NOT NULL`;

/** @returns whether it has its turn: now, or since an attempt before */
export async function takeTurn(store: Store, { id, attempt }: ApplyAttempt): Promise<boolean> {
  try {
    const { rowCount } = await store.knex.raw<{ rowCount: number }>(
      `WITH in_order AS (${IN_ORDER})
       UPDATE applies SET turn_at = coalesce(turn_at, clock_timestamp())
        WHERE id = :id AND attempt = :attempt AND finished_at IS NULL AND (turn_at IS NOT NULL OR (
          NOT EXISTS (SELECT FROM applies WHERE turn_at IS NOT NULL AND finished_at IS NULL)
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

/** Of each owner for whom no worker does anything, the apply that was queued first, if that was so long ago. */
export async function appliesOfWaitingOwners(
  store: Store,
  sinceMs: number,
  limit: number,
): Promise<(ApplyAttempt & Pick<Apply, 'request_id'>)[]> {
  const { rows } = await store.knex.raw(
    `SELECT DISTINCT ON (owner) id, attempt, request_id FROM (SELECT *, ${OWNER('applies')} AS owner FROM applies
      WHERE finished_at IS NULL AND worker_id IS NULL
        AND queued_at < clock_timestamp() - :sinceMs * interval '1 ms') AS waiting
      WHERE owner NOT IN (SELECT ${OWNER('applies')} FROM applies WHERE finished_at IS NULL AND worker_id IS NOT NULL)
      ORDER BY owner, queued_at LIMIT :limit`,
    { sinceMs, limit },
  );
  return rows;
}

/** @returns how many of the same owner have not ended */
export async function countUnfinishedOf(store: Store, actor: Apply['actor']): Promise<number> {
  const { rows } = await store.knex.raw<{ rows: { count: number }[] }>(
    `SELECT count(*)::int AS count FROM applies, (SELECT ?::jsonb AS actor) AS asked
      WHERE finished_at IS NULL AND ${OWNER('applies')} = ${OWNER('asked')}`,
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
