/** Many endpoints that should run, and whose handlers nobody has called since their gateway started. */
import pg from 'pg';
import { must, type Stack } from '../../test/support/processes.js';
import { defineEndpoints } from './many-routes.js';

/** The path of a request to each of them. */
export function pathOf(number: number): string {
  return `/api/v${number % 7}/resource${number}/ada`;
}

/**
 * Makes them, numbered from 0, with the handler of an endpoint that is deployed. Their rows are written as those of
 * that endpoint are, which takes seconds instead of minutes; the gateway has to be started after that.
 */
export async function makeRunning(stack: Stack, count: number, deployedId: string): Promise<void> {
  await defineEndpoints(stack, count);
  const client = new pg.Client(stack.databaseUrl);
  await client.connect();
  try {
    await client.query(
      `WITH deployed AS (
         SELECT code, source_key, artifact, artifact_source_key, latest_version, desired_artifact, endpoints.build_id, targets
           FROM endpoints JOIN deployments ON deployments.id = confirmed_deployment_id WHERE endpoints.id = $1),
       added AS (
         INSERT INTO deployments (endpoint_id, kind, targets, request_id, outcome, revision, finished_at)
         SELECT endpoints.id, 'start', targets, 'bench', 'succeeded', version + 1, clock_timestamp()
           FROM endpoints CROSS JOIN deployed WHERE status = 'created'
         RETURNING id, endpoint_id)
       UPDATE endpoints SET desired_deployment_id = added.id, confirmed_deployment_id = added.id, status = 'running',
              version = version + 1, code = deployed.code, source_key = deployed.source_key,
              artifact = deployed.artifact, artifact_source_key = deployed.artifact_source_key,
              latest_version = deployed.latest_version, desired_artifact = deployed.desired_artifact,
              build_id = deployed.build_id
         FROM added CROSS JOIN deployed WHERE endpoints.id = added.endpoint_id`,
      [deployedId],
    );
    await client.query('ANALYZE');
  } finally {
    await client.end();
  }
  const { endpoints_total } = (await must(stack.api.get('/api/stats'))) as { endpoints_total: number };
  if (endpoints_total < count) throw new Error(`there are ${endpoints_total} endpoints`);
}
