/** How deployments end: they run everywhere and are confirmed, or fail and are taken back. */
import { nextUpdatedAt, type Store, transaction } from './database.js';
import type { DeploymentKind } from './deployments.js';
import { removeVersion } from './versions.js';

/** Records that a deployment runs on all gateways. Does nothing when another one is desired now. */
export async function confirmDeployment(store: Store, endpointId: string, id: string): Promise<void> {
  await transaction(store, async (tx) => {
    const { rows } = await tx.knex.raw<{ rows: { deployed_version: number | null }[] }>(
      `WITH confirmed AS (
         UPDATE endpoints SET status = 'running', last_error = NULL, confirmed_deployment_id = desired_deployment_id
          WHERE id = ? AND desired_deployment_id = ? RETURNING desired_deployment_id)
       UPDATE deployments SET outcome = 'succeeded', finished_at = clock_timestamp() FROM confirmed
        WHERE id = desired_deployment_id AND outcome = 'pending' RETURNING deployed_version`,
      [endpointId, id],
    );
    if (rows.some(({ deployed_version }) => deployed_version !== null)) await takeDraft(tx, id);
  });
}

/** The draft becomes the source of the deployed version, unless it was changed since the deployment was asked for. */
async function takeDraft(tx: Store, deploymentId: string): Promise<void> {
  await tx.knex.raw(
    `UPDATE endpoints
        SET code = endpoint_versions.code, edition = endpoint_versions.edition, entry = endpoint_versions.entry,
            files = endpoint_versions.files, lock = endpoint_versions.lock,
            dependencies = CASE WHEN endpoints.dependencies IS NOT NULL OR endpoint_versions.dependencies <> '{}'
                                THEN endpoint_versions.dependencies END,
            source_key = endpoint_versions.source_key, build_id = builds.id, updated_at = ?
       FROM deployments
       JOIN endpoint_versions ON endpoint_versions.endpoint_id = deployments.endpoint_id
                             AND endpoint_versions.version = deployed_version
       LEFT JOIN builds ON builds.id = deployments.build_id
      WHERE deployments.id = ? AND endpoints.id = deployments.endpoint_id
        AND endpoints.source_key = draft_source_key`,
    [nextUpdatedAt(tx), deploymentId] as never[],
  );
}

/**
 * Records that a deployment failed: the one that was seen running last is desired again. What a start could not start
 * is the error of the endpoint; other deployments leave the endpoint as it was, without the version they would have
 * brought. Does nothing when another one is desired now.
 */
export async function revertDeployment(
  store: Store,
  endpointId: string,
  id: string,
  error: string,
): Promise<void> {
  await transaction(store, async (tx) => {
    const endpoint = await tx
      .knex('endpoints')
      .where({ id: endpointId, desired_deployment_id: id })
      .forUpdate()
      .first<{ id: string } | undefined>('id');
    if (!endpoint) return;
    const [failed] = await tx
      .knex('deployments')
      .where({ id, outcome: 'pending' })
      .update({ outcome: 'failed', error, finished_at: tx.knex.raw('clock_timestamp()') })
      .returning<FailedRow[]>(['kind', 'deployed_version', 'is_new_version']);
    const inError = { status: 'error', last_error: error };
    if (!failed) {
      // It ran before: there is nothing to go back to.
      await tx.knex('endpoints').where({ id: endpointId }).update(inError);
      return;
    }
    await tx
      .knex('endpoints')
      .where({ id: endpointId })
      .update({
        desired_deployment_id: tx.knex.ref('confirmed_deployment_id'),
        desired_artifact: tx
          .knex('deployments')
          .whereRaw('id = confirmed_deployment_id')
          .select(tx.knex.raw("targets->0->>'artifact'")),
        // Other changes meanwhile, such as one of the route, must not keep a version that does not start.
        version: tx.knex.raw('version + 1'),
        ...(failed.kind === 'start' && inError),
      });
    if (failed.is_new_version && failed.deployed_version !== null)
      await removeVersion(tx, endpointId, failed.deployed_version);
    tx.announce('endpoint', endpointId);
  });
}

interface FailedRow {
  readonly kind: DeploymentKind;
  readonly deployed_version: number | null;
  readonly is_new_version: boolean;
}
