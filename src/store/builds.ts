/** The table `builds`: requested builds and their outcomes. What workers do with them: `build-attempts.ts`. */

import { AppError, type ErrorCode } from '../errors.js';
import type { Origin, StoredActor } from '../model/actor.js';
import type { Diagnostic } from '../model/diagnostic.js';
import { ownerOfActor, titleOfOwner } from '../model/owner.js';
import type { FileRef, HandlerSource } from '../model/source-files.js';
import { type BuildStart, buildKey, FROM_SOURCE } from '../model/source-key.js';
import type { Artifact } from './artifacts.js';
import { type Store, transaction } from './database.js';
import { findOwnerOfHost, turnBy } from './owners.js';
import { addCompiledVersions } from './versions.js';

export type BuildState = 'queued' | 'running' | 'succeeded' | 'failed';

/** Milliseconds of the parts of a build. */
export interface BuildTimings {
  /** Preparing the dependency set. */
  readonly dependencies_ms?: number;
  /** The run of rustc. */
  readonly compile_ms?: number;
  /** Digesting and storing the executable. */
  readonly store_ms?: number;
}

/** A row. */
export interface Build extends HandlerSource {
  readonly id: string;
  /** Of the source, and of what the build begins with (`buildKey`). */
  readonly source_key: string;
  /** Of the source alone; null: it is the same. */
  readonly draft_key: string | null;
  /** The lock that it begins with, where the source has none; null: none. */
  readonly base_lock: FileRef | null;
  /** Whether crates are resolved anew, whatever is known. */
  readonly resolves_anew: boolean;
  readonly state: BuildState;
  readonly attempt: number;
  /** Whose limit it counts in, and the domain whose turn it takes; null: an earlier version asked for it. */
  readonly owner: string | null;
  /** Whose turn it takes, and of theirs that of the domain; null: it is not known. */
  readonly principal: string | null;
  readonly request_id: string;
  /** Who asked for it; null: not known. */
  readonly actor: StoredActor | null;
  readonly cached: boolean;
  readonly error_code: ErrorCode | null;
  readonly error: string | null;
  readonly diagnostics: Diagnostic[];
  readonly artifact: string | null;
  /** The lock that crates were resolved to; null: not known. */
  readonly resolved_lock: FileRef | null;
  readonly timings: BuildTimings;
  readonly worker_id: string | null;
  readonly created_at: Date;
  /** When its latest attempt was put on the queue. */
  readonly queued_at: Date;
  readonly started_at: Date | null;
  readonly finished_at: Date | null;
}

/** A source to compile. */
export interface CompilableSource extends HandlerSource {
  readonly sourceKey: string;
}

export interface BuildRequest extends CompilableSource {
  /** What it begins with besides its source. */
  readonly start?: BuildStart;
  /** The endpoint whose draft it is; null when the outcome is written to none. */
  readonly endpointId: string | null;
  /** The host that its endpoint is served at, or `*`: whose turn it takes follows from it. */
  readonly host: string;
  /** Whose turn it takes, where that does not follow from the domains that there are: an apply may create one. */
  readonly owner?: string;
  readonly origin: Origin;
  /** Who asked for it, where that is not the origin; null: it is not known. */
  readonly principal?: string | null;
}

/** How a build ended. */
export type BuildResult =
  | {
      readonly state: 'succeeded';
      readonly artifact: string;
      /** The lock that crates were resolved to; left out or null: not known. */
      readonly resolvedLock?: FileRef | null;
      readonly diagnostics: readonly Diagnostic[];
      readonly cached: boolean;
      readonly timings: BuildTimings;
    }
  | {
      readonly state: 'failed';
      readonly errorCode: ErrorCode;
      readonly error: string;
      readonly diagnostics: readonly Diagnostic[];
      readonly timings: BuildTimings;
    };

/** One attempt of a build; jobs refer to it. */
export interface BuildAttempt {
  readonly id: string;
  readonly attempt: number;
}

const TURN = (row: string) => turnBy('owners', `${row}.principal`, `${row}.owner`);
/** SQL: owner and principal of a build that somebody joins, who is `excluded`. */
const NEARER_TURN = `
  SELECT CASE WHEN is_nearer THEN excluded.owner ELSE builds.owner END,
         CASE WHEN is_nearer THEN excluded.principal ELSE builds.principal END
    FROM (SELECT builds.state = 'queued' AND count(*) FILTER (WHERE ${TURN('others')} = ${TURN('excluded')})
                   < count(*) FILTER (WHERE ${TURN('others')} = ${TURN('builds')}) AS is_nearer
            FROM builds AS others WHERE others.state IN ('queued', 'running')) AS compared`;

/**
 * Joins the build in progress for the same source, or creates a new one, and makes it the latest of the endpoint whose
 * draft it is. A queued one that is joined takes the turn of whoever has fewer builds waiting.
 * @param limit of builds of the owner that have not ended
 * @returns the build, and whether it is new and has to be put on the queue
 * @throws AppError queue_full
 */
export async function requestBuild(
  store: Store,
  request: BuildRequest,
  limit?: number,
): Promise<BuildAttempt & { readonly isNew: boolean }> {
  const owner = request.owner ?? (await findOwnerOfHost(store, request.host));
  const { principal = ownerOfActor(request.origin.actor), start = FROM_SOURCE } = request;
  const { rows } = await store.knex.raw<{ rows: (BuildAttempt & { isNew: boolean })[] }>(
    `WITH build AS (
       INSERT INTO builds (source_key, draft_key, code, edition, entry, files, dependencies, lock, base_lock,
                           resolves_anew, state, owner, principal, request_id, actor)
       SELECT :key, :sourceKey, :code, :edition, :entry, :files::jsonb, :dependencies::jsonb, :lock::jsonb,
              :baseLock::jsonb, :resolvesAnew, 'queued', :owner, :principal, :requestId, :actor::jsonb
        WHERE :limit::integer IS NULL
           OR EXISTS (SELECT FROM builds WHERE source_key = :key AND state IN ('queued', 'running'))
           OR (SELECT count(*) FROM builds WHERE owner = :owner AND state IN ('queued', 'running')) < :limit
       ON CONFLICT (source_key) WHERE state IN ('queued', 'running') DO UPDATE SET (owner, principal) = (${NEARER_TURN})
       RETURNING id, attempt, xmax = 0 AS "isNew"),
     latest AS (
       UPDATE endpoints SET build_id = build.id, build_actor = :actor::jsonb FROM build
        WHERE endpoints.id = :endpointId::uuid)
     SELECT * FROM build`,
    {
      ...{
        ...{ key: buildKey(request.sourceKey, start), sourceKey: request.sourceKey },
        ...{ code: request.code, edition: request.edition, entry: request.entry },
        files: request.files && JSON.stringify(request.files),
        dependencies: JSON.stringify(request.dependencies),
        lock: request.lock && JSON.stringify(request.lock),
        baseLock: start.lock && JSON.stringify(start.lock),
        resolvesAnew: start.update !== null,
      },
      ...{ owner, principal, endpointId: request.endpointId, limit: limit ?? null },
      ...{ requestId: request.origin.requestId, actor: JSON.stringify(request.origin.actor) },
    } as never,
  );
  const [build] = rows;
  if (build) return build;
  throw new AppError(
    'queue_full',
    `Endpoints of ${titleOfOwner(owner)} have ${limit} builds that have not ended (BUILDS_QUEUED_LIMIT); try again later.`,
  );
}

/**
 * Records a build that needed no compiler: the artifact of the same source is known. It is the same build as the last
 * one of that kind that the endpoint had of this source, and becomes the newest: asking again adds no rows.
 * @returns the build; undefined when the artifact was deleted meanwhile
 */
export async function recordCachedBuild(
  store: Store,
  request: BuildRequest,
  known: Artifact,
): Promise<string | undefined> {
  const { endpointId, origin, ...source } = request;
  return transaction(store, async (tx) => {
    const id = await insertCachedBuild(tx, request, known);
    if (id !== undefined && endpointId !== null)
      await addCompiledVersions(
        tx,
        { endpointId },
        {
          ...{ ...source, artifact: known.digest, actor: origin.actor },
          resolvedLock: known.resolved_lock ?? null,
        },
      );
    return id;
  });
}

/** Makes it the latest build of the endpoint, too. */
async function insertCachedBuild(
  tx: Store,
  request: BuildRequest,
  known: Artifact,
): Promise<string | undefined> {
  const { rows } = await tx.knex.raw<{ rows: { id: string }[] }>(
    `WITH known AS (
       SELECT digest FROM artifacts WHERE source_key = ? AND toolchain = ? AND digest = ? FOR KEY SHARE),
     build AS (
       INSERT INTO builds (known_for, source_key, draft_key, code, edition, entry, files, dependencies, lock, base_lock,
                           state, cached, request_id, actor, artifact, resolved_lock, diagnostics, started_at,
                           finished_at)
       SELECT ?, ?, ?, ?, ?, ?, ?::jsonb, ?::jsonb, ?::jsonb, ?::jsonb, 'succeeded', true, ?, ?::jsonb, digest, ?::jsonb,
              ?::jsonb, clock_timestamp(), clock_timestamp()
         FROM known
       ON CONFLICT (known_for, source_key) WHERE known_for IS NOT NULL DO UPDATE
             SET request_id = excluded.request_id, actor = excluded.actor, artifact = excluded.artifact,
                 resolved_lock = excluded.resolved_lock, diagnostics = excluded.diagnostics, created_at = excluded.created_at,
                 started_at = excluded.started_at, finished_at = excluded.finished_at
       RETURNING id),
     latest AS (
       UPDATE endpoints SET build_id = build.id, build_actor = ?::jsonb FROM build WHERE endpoints.id = ?)
     SELECT id FROM build`,
    [
      ...[known.source_key, known.toolchain, known.digest],
      ...[request.endpointId ?? request.host, known.source_key, request.sourceKey],
      ...[request.code, request.edition, request.entry, request.files && JSON.stringify(request.files)],
      ...[JSON.stringify(request.dependencies), request.lock && JSON.stringify(request.lock)],
      request.start?.lock ? JSON.stringify(request.start.lock) : null,
      ...[request.origin.requestId, JSON.stringify(request.origin.actor)],
      ...[
        known.resolved_lock ? JSON.stringify(known.resolved_lock) : null,
        JSON.stringify(known.diagnostics),
      ],
      ...[JSON.stringify(request.origin.actor), request.endpointId],
    ] as never[],
  );
  return rows[0]?.id;
}

export async function findBuild(store: Store, id: string): Promise<Build | undefined> {
  return store.knex<Build>('builds').where({ id }).first();
}

/** Deletes finished builds older than this, but never the latest of an endpoint. */
export async function pruneBuilds(store: Store, olderThanMs: number): Promise<number> {
  return store
    .knex('builds')
    .whereRaw("finished_at < clock_timestamp() - ? * interval '1 millisecond'", [olderThanMs])
    .whereNotExists(store.knex('endpoints').whereRaw('endpoints.build_id = builds.id'))
    .delete();
}
