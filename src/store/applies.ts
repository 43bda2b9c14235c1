/**
 * The table `applies`: sets of changes of an installation, each done entirely or not at all. The state of a row says
 * how far it is, and only the current attempt moves it on. `apply-turns.ts` says whose turn it is.
 */
import type { InstallationObject, ObjectChange } from '../apply/objects.js';
import { AppError, type ErrorCode, type ErrorFacts } from '../errors.js';
import type { StoredActor } from '../model/actor.js';
import type { StoredRights } from '../model/rights.js';
import { ONE_FILE } from '../model/source-files.js';
import type { Store } from './database.js';
import { byCreation, type ListOptions, type Page, readPage } from './pages.js';

/** How far an apply is. Those after `committing` have changed the installation. */
export const APPLY_STATES = [
  ...(['queued', 'compiling', 'waiting', 'preparing', 'committing', 'converging', 'succeeded'] as const),
  ...(['failed', 'undoing', 'undone', 'not_undone'] as const),
] as const;
export type ApplyState = (typeof APPLY_STATES)[number];

/**
 * How many of its handlers are compiled and prepared, how many applies before it have ended, and how many endpoints
 * gateways have taken.
 */
export interface ApplyProgress {
  readonly [step: string]: { readonly done: number; readonly of: number };
}

/** What it has done. */
export interface ApplyOutcome {
  readonly created: number;
  readonly updated: number;
  readonly deleted: number;
  /** Endpoints whose newest code serves since. */
  readonly deployed: number;
  readonly warnings: readonly string[];
}

/** An endpoint that an apply has written. */
export interface WrittenEndpoint {
  readonly id: string;
  /** The deployment that it was given; null: none. */
  readonly deployment: string | null;
  /** Gateways that have reconciled this revision know of the change. */
  readonly revision: number;
  /** Nothing should serve since. */
  readonly isStopped: boolean;
  /** It was in error before: that says nothing about the apply. */
  readonly wasFailed: boolean;
}

/** A service that an apply has written. */
export interface WrittenService {
  readonly id: string;
  readonly version: number;
}

/** What is to be waited for. */
export interface AnnouncedChanges {
  readonly endpoints: readonly WrittenEndpoint[];
  readonly services: readonly WrittenService[];
}

/** A row. */
export interface Apply {
  readonly id: string;
  readonly stack: string;
  readonly plan_hash: string;
  readonly rollback_of: string | null;
  readonly state: ApplyState;
  readonly actor: StoredActor | null;
  /** Those of the actor when they asked; null: a process of the version before took the request. */
  readonly rights: StoredRights | null;
  readonly request_id: string;
  readonly plan: unknown;
  readonly changes: readonly ObjectChange[];
  readonly hosts: readonly string[];
  readonly progress: ApplyProgress;
  readonly outcome: ApplyOutcome | null;
  readonly error_code: ErrorCode | null;
  readonly error: string | null;
  readonly error_details: Readonly<Record<string, unknown>> | null;
  readonly written: AnnouncedChanges | null;
  readonly undone_at: Date | null;
  readonly worker_id: string | null;
  readonly attempt: number;
  readonly version: number;
  /** It fails rather than wait for others. */
  readonly no_wait: boolean;
  readonly created_at: Date;
  readonly committed_at: Date | null;
  readonly finished_at: Date | null;
}

/** Without what is large or internal. */
export const SUMMARY = [
  ...(['id', 'stack', 'plan_hash', 'rollback_of', 'state', 'actor', 'request_id', 'progress'] as const),
  ...(['outcome', 'error_code', 'error', 'version', 'created_at', 'committed_at', 'finished_at'] as const),
] as const;
export type ApplySummary = Pick<Apply, (typeof SUMMARY)[number]>;
const WITHOUT_CHANGES = [
  ...SUMMARY,
  ...([
    'plan',
    'hosts',
    'error_details',
    'written',
    'undone_at',
    'worker_id',
    'attempt',
    'no_wait',
    'rights',
  ] as const),
] as const;

/** One attempt; jobs refer to it. */
export interface ApplyAttempt {
  readonly id: string;
  readonly attempt: number;
}

/** Whoever has lost an attempt stops working on it. */
export class AttemptLost extends Error {
  override readonly name = 'AttemptLost';
}

/** @param other the id of an apply that is earlier */
export function busy(other: string): AppError {
  return new AppError(
    'apply_busy',
    `Another apply has not ended yet (GET /api/applies/${other}), and this one does not wait for it (no_wait); ` +
      'nothing was changed. Try again when it has ended.',
    { details: { apply_id: other } },
  );
}

/**
 * SQL: members of the row, in the first of rows that are numbered with `at`. So what is large is read in rows of their
 * own: parsing all of it at once would hold up the event loop.
 */
export function inFirst(names: readonly string[]): string {
  return names.map((name) => `CASE WHEN coalesce(at, 1) = 1 THEN applies.${name} END AS ${name}`).join(', ');
}

/**
 * The apply with what it changes, which has all code and may be hundreds of megabytes: all of it is there, or nothing.
 */
export async function findApply(store: Store, id: string): Promise<Apply | undefined> {
  const { rows } = await store.knex.raw<{
    rows: (Omit<Apply, 'changes'> & { change: ObjectChange | null })[];
  }>(
    `SELECT ${inFirst(WITHOUT_CHANGES)}, change
       FROM applies LEFT JOIN jsonb_array_elements(changes) WITH ORDINALITY AS elements (change, at) ON true
      WHERE id = ? ORDER BY at`,
    [id],
  );
  const [first] = rows;
  if (!first) return undefined;
  const { change: _, ...found } = first;
  return { ...found, changes: rows.flatMap(({ change }) => (change ? completed(change) : [])) };
}

/** A row for each: parsing all of them at once would hold up the event loop. */
async function changesOf(store: Store, id: string): Promise<ObjectChange[]> {
  const { rows } = await store.knex.raw<{ rows: { change: ObjectChange }[] }>(
    `SELECT change FROM applies, jsonb_array_elements(changes) WITH ORDINALITY AS changes (change, at)
      WHERE id = ? ORDER BY at`,
    [id],
  );
  return rows.map(({ change }) => completed(change));
}

/** A change with all members of its objects: one that an earlier version has written has no files of sources. */
function completed(change: ObjectChange): ObjectChange {
  const { before, after } = change;
  if (before?.kind !== 'endpoint' && after?.kind !== 'endpoint') return change;
  const whole = (object: InstallationObject | null): InstallationObject | null =>
    object?.kind === 'endpoint' ? { ...ONE_FILE, ...object } : object;
  return { ...change, before: whole(before), after: whole(after) };
}

/** Without what is large or internal. */
export async function findApplySummary(store: Store, id: string): Promise<ApplySummary | undefined> {
  return store
    .knex('applies')
    .where({ id })
    .first<ApplySummary>(...SUMMARY);
}

/** The progress of an apply. */
export async function applyProgress(
  store: Store,
  id: string,
): Promise<Pick<Apply, 'state' | 'progress' | 'version' | 'finished_at'> | undefined> {
  return store.knex<Apply>('applies').where({ id }).first('state', 'progress', 'version', 'finished_at');
}

const ORDER = byCreation('applies', 'desc', ['stack', 'request_id', 'error'], 'apply');

/** The newest first, without what they change. */
export async function listApplies(store: Store, options: ListOptions): Promise<Page<ApplySummary>> {
  const query = store.knex('applies').select(...SUMMARY);
  return readPage(store, query, ORDER, options);
}

/**
 * Claims an attempt for a worker, which resumes where the one before has ended.
 * @returns undefined when it has ended, another worker has claimed it, or it is not current any more
 */
export async function claimApply(
  store: Store,
  { id, attempt }: ApplyAttempt,
  workerId: string,
): Promise<Apply | undefined> {
  const [claimed] = await store
    .knex<Apply>('applies')
    .where({ id, attempt, worker_id: null, finished_at: null })
    .update({ worker_id: workerId })
    .returning([...WITHOUT_CHANGES]);
  return claimed && { ...claimed, changes: await changesOf(store, id) };
}

/**
 * Changes an apply that this attempt still has.
 * @param tx in which the change counts only when all else does
 * @throws AttemptLost
 */
export async function advanceApply(
  tx: Store,
  { id, attempt }: ApplyAttempt,
  from: ApplyState,
  changes: {
    readonly state?: ApplyState;
    readonly progress?: ApplyProgress;
    readonly outcome?: ApplyOutcome;
    readonly written?: AnnouncedChanges;
    readonly failure?: ErrorFacts;
    readonly isCommitted?: true;
    readonly isUndone?: true;
    readonly hasEnded?: true;
    /** All that it needs is compiled. */
    readonly isReady?: true;
  },
): Promise<void> {
  const { state, progress, outcome, written, failure, isCommitted, isUndone, hasEnded, isReady } = changes;
  const now = tx.knex.raw('clock_timestamp()');
  const changed = await tx
    .knex('applies')
    .where({ id, attempt, state: from, finished_at: null })
    .update({
      version: tx.knex.raw('version + 1'),
      ...(state && { state }),
      ...(progress && { progress: JSON.stringify(progress) }),
      ...(outcome && { outcome: JSON.stringify(outcome) }),
      ...(written && { written: JSON.stringify(written) }),
      ...(failure && {
        error_code: failure.code,
        error: failure.message,
        error_details: failure.details ? JSON.stringify(failure.details) : null,
      }),
      ...(isCommitted && { committed_at: now }),
      ...(isUndone && { undone_at: now }),
      ...(hasEnded && { finished_at: now }),
      // An attempt before may have been ready.
      ...(isReady && { ready_at: tx.knex.raw('coalesce(ready_at, clock_timestamp())') }),
    });
  if (changed === 0)
    throw new AttemptLost(`the attempt ${attempt} of the apply ${id} is not current any more`);
  tx.announce('apply', id);
}

/** @throws AttemptLost when another attempt continues the apply, or it has ended */
export async function requireCurrent(store: Store, { id, attempt }: ApplyAttempt): Promise<void> {
  const current = await store.knex('applies').where({ id, attempt, finished_at: null }).first('id');
  if (!current) throw new AttemptLost(`the attempt ${attempt} of the apply ${id} is not current any more`);
}

/** An apply that has not ended, as recovery sees it. */
export interface UnfinishedApply extends ApplyAttempt {
  readonly state: ApplyState;
  readonly worker_id: string | null;
  readonly request_id: string;
  /** Milliseconds since it was queued. */
  readonly queued_ms: number;
}

export async function unfinishedApplies(store: Store): Promise<UnfinishedApply[]> {
  return store
    .knex('applies')
    .whereNull('finished_at')
    .select<UnfinishedApply[]>(
      ...['id', 'attempt', 'state', 'worker_id', 'request_id'],
      store.knex.raw(
        'extract(epoch FROM clock_timestamp() - queued_at)::double precision * 1000 AS queued_ms',
      ),
    );
}

/**
 * Starts a new attempt of a lost apply, which keeps its state and its turn only where it has changed something: others
 * go on meanwhile, and it compiles again, where another version of the compiler may have to. Undefined when it has
 * changed meanwhile.
 */
export async function requeueApply(
  store: Store,
  { id, attempt }: ApplyAttempt,
): Promise<ApplyAttempt | undefined> {
  const [next] = await store
    .knex('applies')
    .where({ id, attempt, finished_at: null })
    .update({
      ...{ attempt: attempt + 1, worker_id: null, queued_at: store.knex.raw('clock_timestamp()') },
      state: store.knex.raw("CASE WHEN state IN ('converging', 'undoing') THEN state ELSE 'queued' END"),
      turn_at: store.knex.raw("CASE WHEN state IN ('converging', 'undoing') THEN turn_at END"),
      ready_at: null,
    })
    .returning<ApplyAttempt[]>(['id', 'attempt']);
  return next;
}
