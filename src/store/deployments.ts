/**
 * The table `deployments`: which versions of an endpoint should serve. Rows are added, and settled once, see
 * `deployment-outcomes.ts`.
 */
import { AppError } from '../errors.js';
import type { Origin, StoredActor } from '../model/actor.js';
import type { FileRef } from '../model/source-files.js';
import type { CompilableSource } from './builds.js';
import { type Store, transaction } from './database.js';
import type { DeployedTarget, StickyBy } from './endpoint-runs.js';
import { IS_LIVE_NODE } from './nodes.js';
import { addVersions, removeVersion } from './versions.js';

/** The kinds after which versions serve. */
export type ServingKind = 'start' | 'deploy' | 'rollback' | 'canary';
export type DeploymentKind = ServingKind | 'stop' | 'crash';

/** `overtaken`: another one was asked for before it ran everywhere. */
export type DeploymentOutcome = 'pending' | 'succeeded' | 'failed' | 'overtaken';

/** A row. */
export interface Deployment {
  readonly id: string;
  readonly endpoint_id: string;
  readonly kind: DeploymentKind;
  /** Empty: nothing should serve. */
  readonly targets: readonly DeployedTarget[];
  readonly sticky: StickyBy | null;
  readonly message: string | null;
  readonly actor: StoredActor | null;
  readonly request_id: string;
  readonly outcome: DeploymentOutcome;
  /** Why it failed. */
  readonly error: string | null;
  readonly created_at: Date;
  readonly finished_at: Date | null;
}

/** What is asked for. */
export interface DeploymentRequest {
  readonly endpointId: string;
  readonly kind: ServingKind;
  /** Null: all requests to the newest version. */
  readonly targets: readonly DeployedTarget[] | null;
  readonly sticky?: StickyBy | null;
  readonly message?: string | null;
  readonly origin: Origin;
  readonly draft?: DeployedDraft;
  /** The apply that settles it. */
  readonly applyId?: string;
}

/** A version whose source becomes the draft when it serves, unless the draft was changed meanwhile. */
export interface DeployedDraft {
  readonly version: number;
  /** Whether it was made for this deployment. */
  readonly isNew: boolean;
  readonly buildId: string;
  /** Source of the draft when the deployment was asked for. */
  readonly draftSourceKey: string;
}

/** A source that was compiled to be deployed. */
export interface SourceDeployment {
  readonly endpointId: string;
  readonly source: CompilableSource & { readonly artifact: string; readonly resolvedLock: FileRef | null };
  readonly buildId: string;
  /** Share of the requests; what serves now keeps the rest. */
  readonly percent: number;
  readonly message: string | null;
  readonly origin: Origin;
}

/**
 * Makes a source the newest version, and its deployment the desired one.
 * @returns undefined when there is no endpoint
 * @throws AppError nothing_deployed when no other version serves the rest
 */
export async function requestSourceDeployment(
  store: Store,
  { endpointId, source, buildId, percent, message, origin }: SourceDeployment,
): Promise<(RequestedDeployment & { readonly version: number }) | undefined> {
  return transaction(store, async (tx) => {
    const endpoint = await tx
      .knex('endpoints')
      .where({ id: endpointId })
      .forUpdate()
      .first<DraftRow | undefined>('source_key', 'confirmed_deployment_id');
    if (!endpoint) return undefined;
    const [added] = await addVersions(tx, [endpointId], { ...source, message, actor: origin.actor });
    if (!added) throw new Error(`no version was added to the endpoint ${endpointId}`);
    const { version, isNew } = added;
    const targets = [{ version, percent, artifact: source.artifact }];
    let sticky: StickyBy | null = null;
    if (percent < 100) {
      const { rest, ...serving } = await servingTheRest(tx, endpoint.confirmed_deployment_id, version);
      sticky = serving.sticky;
      targets.push({ ...rest, percent: 100 - percent });
      targets.sort((left, right) => right.percent - left.percent);
    }
    const requested = await addDeployment(tx, {
      endpointId,
      kind: percent < 100 ? 'canary' : 'deploy',
      targets,
      sticky,
      message,
      origin,
      draft: { version, isNew, buildId, draftSourceKey: endpoint.source_key },
    });
    return typeof requested === 'object' ? { ...requested, version } : undefined;
  });
}

interface DraftRow {
  readonly source_key: string;
  readonly confirmed_deployment_id: string | null;
}

/**
 * The version with the greatest share now, besides a new one, and what callers keep their version by.
 * @throws AppError nothing_deployed
 */
async function servingTheRest(
  tx: Store,
  deploymentId: string | null,
  version: number,
): Promise<{ readonly rest: DeployedTarget; readonly sticky: StickyBy | null }> {
  const deployment =
    deploymentId === null
      ? undefined
      : await tx.knex<Deployment>('deployments').where({ id: deploymentId }).first('targets', 'sticky');
  const others = (deployment?.targets ?? []).filter((target) => target.version !== version);
  const [rest] = others.sort((left, right) => right.percent - left.percent);
  if (rest) return { rest, sticky: deployment?.sticky ?? null };
  throw new AppError(
    'nothing_deployed',
    deployment
      ? `Version ${version} serves already, and no other one that could keep a share of the requests.`
      : 'No version serves that could keep a share of the requests; deploy without "percent" first.',
  );
}

/** A deployment that gateways were asked for. */
export interface RequestedDeployment {
  readonly id: string;
  readonly targets: readonly DeployedTarget[];
  /** Gateways that have reconciled this revision of the endpoint, or a later one, know of it. */
  readonly revision: number;
}

/**
 * Makes a deployment the desired one. Nothing changes when a start asks for what is desired already, unless the
 * endpoint is in error, or asleep on a gateway: then the gateways try again, or wake it.
 * @returns undefined when there is no endpoint; `not_compiled` when it has no version
 */
export async function requestDeployment(
  store: Store,
  request: DeploymentRequest,
): Promise<RequestedDeployment | 'not_compiled' | undefined> {
  return transaction(store, async (tx) => {
    // Locked before anything is read: of two starts at once, the second finds the deployment of the first.
    await tx.knex('endpoints').where({ id: request.endpointId }).forUpdate().first('id');
    return addDeployment(tx, request);
  });
}

/** @param tx in which the endpoint is locked */
export async function addDeployment(
  tx: Store,
  { endpointId, kind, targets, sticky = null, message = null, origin, draft, applyId }: DeploymentRequest,
): Promise<RequestedDeployment | 'not_compiled' | undefined> {
  const { rows } = await tx.knex.raw<{ rows: RequestRow[] }>(
    `WITH endpoint AS (
       SELECT endpoints.id, endpoints.version AS revision, status, desired_deployment_id, deployments.targets AS desired,
              coalesce(?::jsonb, CASE WHEN artifact IS NOT NULL THEN jsonb_build_array(jsonb_build_object(
                'version', latest_version, 'percent', 100, 'artifact', artifact)) END) AS requested
         FROM endpoints LEFT JOIN deployments ON deployments.id = desired_deployment_id
        WHERE endpoints.id = ? FOR UPDATE OF endpoints),
     added AS (
       INSERT INTO deployments (endpoint_id, kind, targets, sticky, message, request_id, actor, outcome, revision,
                                deployed_version, is_new_version, build_id, draft_source_key, apply_id)
       SELECT id, ?, requested, ?::jsonb, ?, ?, ?::jsonb, 'pending', revision + 1, ?::integer, ?::boolean, ?::uuid, ?::text, ?::uuid
         FROM endpoint
        WHERE requested IS NOT NULL AND (?::text <> 'start' OR desired IS DISTINCT FROM requested OR status = 'error' OR EXISTS (
                -- Asleep since the last change: a gateway that has not seen that yet may be starting it.
                SELECT FROM observations JOIN nodes ON nodes.id = node_id
                 WHERE endpoint_id = endpoint.id AND observations.version >= endpoint.revision
                   AND state = 'running' AND serving = '[]' AND ${IS_LIVE_NODE}))
       RETURNING id, targets, revision),
     overtaken AS (
       UPDATE deployments SET outcome = 'overtaken', finished_at = clock_timestamp()
        WHERE endpoint_id = ? AND outcome = 'pending' AND EXISTS (SELECT FROM added)
       RETURNING CASE WHEN is_new_version THEN deployed_version END AS unserved),
     changed AS (
       UPDATE endpoints SET desired_deployment_id = added.id, version = added.revision,
              -- For gateways from before there were versions, which run until they are upgraded, too.
              desired_artifact = added.targets->0->>'artifact'
         FROM added WHERE endpoints.id = ?)
     SELECT endpoint.requested, added.id IS NOT NULL AS is_new, coalesce(added.id, desired_deployment_id) AS id,
            coalesce(added.targets, desired) AS targets, coalesce(added.revision, endpoint.revision) AS revision,
            (SELECT max(unserved) FROM overtaken) AS unserved
       FROM endpoint LEFT JOIN added ON true`,
    [
      ...[targets && JSON.stringify(targets), endpointId, kind, sticky && JSON.stringify(sticky)],
      ...[message, origin.requestId, JSON.stringify(origin.actor)],
      ...[
        draft?.version ?? null,
        draft?.isNew ?? false,
        draft?.buildId ?? null,
        draft?.draftSourceKey ?? null,
        applyId ?? null,
      ],
      ...[kind, endpointId, endpointId],
    ] as never[],
  );
  const row = rows[0];
  if (!row) return undefined;
  if (row.requested === null) return 'not_compiled';
  const { id, targets: deployed, revision, unserved } = row;
  if (row.is_new) tx.announce('endpoint', endpointId);
  if (unserved !== null && deployed.some(({ version }) => version === unserved)) {
    // It is still new, and goes if it does not serve with this deployment either.
    await tx.knex('deployments').where({ id }).update({ deployed_version: unserved, is_new_version: true });
  } else if (unserved !== null) await removeVersion(tx, endpointId, unserved);
  return { id, targets: deployed, revision };
}

interface RequestRow extends RequestedDeployment {
  readonly requested: readonly DeployedTarget[] | null;
  readonly is_new: boolean;
  /** The version that was made for the deployment that this one overtakes. */
  readonly unserved: number | null;
}

/**
 * Makes nothing the desired state.
 * @returns the revision to wait for; undefined when nothing was desired
 */
export async function requestStop(
  store: Store,
  endpointId: string,
  { requestId, actor }: Origin,
): Promise<number | undefined> {
  return transaction(store, async (tx) => {
    const { rows } = await tx.knex.raw<{ rows: { revision: number; unserved: number | null }[] }>(
      `WITH stopped AS (
         UPDATE endpoints SET desired_deployment_id = NULL, confirmed_deployment_id = NULL, desired_artifact = NULL,
                              status = 'stopped', last_error = NULL, version = version + 1
          WHERE id = ? AND desired_deployment_id IS NOT NULL RETURNING id, version AS revision),
       overtaken AS (
         UPDATE deployments SET outcome = 'overtaken', finished_at = clock_timestamp() FROM stopped
          WHERE endpoint_id = stopped.id AND outcome = 'pending'
         RETURNING CASE WHEN is_new_version THEN deployed_version END AS unserved),
       added AS (
         INSERT INTO deployments (endpoint_id, kind, targets, request_id, actor, outcome, revision, finished_at)
         SELECT id, 'stop', '[]', ?, ?::jsonb, 'succeeded', revision, clock_timestamp() FROM stopped)
       SELECT revision, (SELECT max(unserved) FROM overtaken) AS unserved FROM stopped`,
      [endpointId, requestId, JSON.stringify(actor)],
    );
    const stopped = rows[0];
    if (!stopped) return undefined;
    if (stopped.unserved !== null) await removeVersion(tx, endpointId, stopped.unserved);
    tx.announce('endpoint', endpointId);
    return stopped.revision;
  });
}

/** The newest first. */
export async function listDeployments(store: Store, endpointId: string): Promise<Deployment[]> {
  return store.knex<Deployment>('deployments').where({ endpoint_id: endpointId }).orderBy('position', 'desc');
}

/** A deployment that nobody may be waiting for any more. */
export interface PendingDeployment extends RequestedDeployment {
  readonly endpoint_id: string;
  /** Milliseconds since it was asked for. */
  readonly age_ms: number;
}

/** Without those of an apply that has not ended: it settles all of its own together. */
export async function pendingDeployments(store: Store): Promise<PendingDeployment[]> {
  return store
    .knex('deployments')
    .where({ outcome: 'pending' })
    .whereNotExists(store.knex('applies').whereRaw('applies.id = apply_id').whereNull('finished_at'))
    .orderBy('created_at')
    .select<PendingDeployment[]>(
      'id',
      'endpoint_id',
      'targets',
      'revision',
      store.knex.raw('extract(epoch FROM clock_timestamp() - created_at)::double precision * 1000 AS age_ms'),
    );
}

/** SQL: whether something served with a row of `deployments`. */
const served = (table: string) => `${table}.outcome = 'succeeded' AND ${table}.kind NOT IN ('stop', 'crash')`;

/** SQL: whether a row of `deployments` is the last one with which a version that is there served, or served alone. */
const IS_LAST_OF_A_VERSION = `(${served('deployments')} AND EXISTS (
  SELECT FROM jsonb_array_elements(targets) AS target
    JOIN endpoint_versions ON endpoint_versions.endpoint_id = deployments.endpoint_id
     AND endpoint_versions.version = (target->>'version')::integer
   WHERE NOT EXISTS (
     SELECT FROM deployments AS later
      WHERE later.endpoint_id = deployments.endpoint_id AND later.position > deployments.position
        AND ${served('later')} AND jsonb_array_length(later.targets) <= jsonb_array_length(deployments.targets)
        AND later.targets @> jsonb_build_array(jsonb_build_object('version', target->'version')))))`;

/**
 * Deletes all but the newest deployments of each endpoint, those that are in force, and those that tell which version
 * to roll back to.
 * @returns how many
 */
export async function pruneDeployments(store: Store, kept: number): Promise<number> {
  const { rowCount } = await store.knex.raw<{ rowCount: number }>(
    `DELETE FROM deployments USING (
       SELECT id, row_number() OVER (PARTITION BY endpoint_id ORDER BY position DESC) AS age FROM deployments) aged
      WHERE deployments.id = aged.id AND age > ? AND outcome <> 'pending'
        AND NOT EXISTS (SELECT FROM endpoints WHERE deployments.id IN (desired_deployment_id, confirmed_deployment_id))
        AND NOT ${IS_LAST_OF_A_VERSION}`,
    [kept],
  );
  return rowCount;
}
