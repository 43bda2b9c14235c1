/** Adds applies to the table `applies`, one at a time, up to what somebody may have waiting. */
import type { ObjectChange } from '../apply/objects.js';
import { AppError } from '../errors.js';
import { eachPartOfJson, jsonInParts } from '../util/pauses.js';
import { type Apply, busy } from './applies.js';
import { countUnfinishedOf, earlierThanNew } from './apply-turns.js';
import { type Store, transaction, violatedForeignKey } from './database.js';

type NewApply = Pick<
  Apply,
  | 'id'
  | 'stack'
  | 'plan_hash'
  | 'rollback_of'
  | 'actor'
  | 'rights'
  | 'request_id'
  | 'plan'
  | 'changes'
  | 'hosts'
  | 'no_wait'
>;

/** That somebody has asked for and that have not ended, at most. */
const MAX_OF_OWNER = 20;

/**
 * @throws AppError apply_busy when somebody has asked for too many, or for one that does not wait for others;
 *   not_found when the apply that it rolls back is not kept any more
 */
export async function insertApply(store: Store, added: NewApply): Promise<void> {
  const plan = (await jsonInParts(added.plan)).toString();
  await transaction(store, async (tx) => {
    const { sql, bindings } = await sendChanges(tx, added.changes);
    const changes = tx.knex.raw(sql, bindings);
    // One is added at a time: what is counted, and what is earlier, is still so when the row is there.
    await tx.knex.raw("SELECT pg_advisory_xact_lock(hashtextextended('edge-gateway new applies', 0))");
    const earlier = added.no_wait ? await earlierThanNew(tx, added.stack) : undefined;
    if (earlier !== undefined) throw busy(earlier);
    if ((await countUnfinishedOf(tx, added.actor)) >= MAX_OF_OWNER)
      throw new AppError(
        'apply_busy',
        `You have asked for ${MAX_OF_OWNER} applies that have not ended yet; try again when one has.`,
      );
    await tx.knex('applies').insert({
      ...added,
      actor: JSON.stringify(added.actor),
      rights: added.rights && JSON.stringify(added.rights),
      ...{ plan, changes },
      hosts: [...added.hosts],
    });
  }).catch((thrown: unknown) => {
    if (violatedForeignKey(thrown) !== 'applies_rollback_of_foreign') throw thrown;
    throw new AppError(
      'not_found',
      `The apply ${added.rollback_of} is not kept any more`,
      {},
      { cause: thrown },
    );
  });
}

/** Characters that are sent at once, and one change more. */
const SENT = 1024 * 1024;

/**
 * What an apply changes, as a value of SQL until the end of the transaction. What is large is sent to the database in
 * parts: all of it as one value would hold up the event loop.
 */
async function sendChanges(
  { knex }: Store,
  changes: readonly ObjectChange[],
): Promise<{ readonly sql: string; readonly bindings: string[] }> {
  const parts = partsOf(changes);
  const first = await parts.next();
  let next = await parts.next();
  if (next.done) return { sql: '?::jsonb', bindings: [first.value ?? '[]'] };
  await knex.raw('CREATE TEMP TABLE new_changes (part integer, changes jsonb) ON COMMIT DROP');
  const send = (part: number, text: string) =>
    knex.raw('INSERT INTO new_changes VALUES (?, ?)', [part, text]);
  await send(0, first.value ?? '[]');
  for (let part = 1; !next.done; part++, next = await parts.next()) await send(part, next.value);
  const sql = `(SELECT jsonb_agg(change ORDER BY part, at)
    FROM new_changes, jsonb_array_elements(new_changes.changes) WITH ORDINALITY AS elements (change, at))`;
  return { sql, bindings: [] };
}

/** JSON of lists of changes, none of them much larger than `SENT`, unless one change is. */
async function* partsOf(changes: readonly ObjectChange[]): AsyncGenerator<string, undefined, undefined> {
  let text = '';
  for (const change of changes) {
    text += text === '' ? '[' : ',';
    for await (const part of eachPartOfJson(change)) text += part;
    if (text.length < SENT) continue;
    yield `${text}]`;
    text = '';
  }
  if (text !== '') yield `${text}]`;
  return undefined;
}
