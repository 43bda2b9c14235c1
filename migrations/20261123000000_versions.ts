import type { Knex } from 'knex';

/**
 * What endpoints serve becomes versions and deployments; what runs now, version 1 and its deployment. Only adds: the
 * columns `desired_artifact`, `confirmed_artifact` and `desired_by`, and `artifact` and `pid` of observations, are for
 * processes that are not upgraded yet.
 */
export async function up(knex: Knex): Promise<void> {
  // A source that was compiled. Rows are never changed, but for the executable: another toolchain makes another one.
  await knex.schema.createTable('endpoint_versions', (table) => {
    table.uuid('endpoint_id').notNullable().references('endpoints.id').onDelete('CASCADE');
    table.integer('version').notNullable();
    table.text('source_key').notNullable();
    table.text('code').notNullable();
    table.jsonb('dependencies').notNullable();
    table.text('artifact').notNullable().index();
    table.text('message');
    // Who made it, as JSON; null: not known.
    table.jsonb('actor');
    table.timestamp('created_at').notNullable().defaultTo(knex.raw('clock_timestamp()'));
    table.primary(['endpoint_id', 'version']);
  });

  // What was asked to serve, and what came of it: rows are added, and settled once.
  await knex.schema.createTable('deployments', (table) => {
    table.uuid('id').primary().defaultTo(knex.raw('gen_random_uuid()'));
    table.bigIncrements('position', { primaryKey: false });
    table.uuid('endpoint_id').notNullable().references('endpoints.id').onDelete('CASCADE');
    table.text('kind').notNullable().checkIn(['start', 'deploy', 'rollback', 'canary', 'stop', 'crash']);
    // [{version, percent, artifact}]; empty: nothing.
    table.jsonb('targets').notNullable();
    // {header} or {cookie}: callers with the same value keep their version.
    table.jsonb('sticky');
    table.text('message');
    table.jsonb('actor');
    // Id of the API call that asked for it.
    table.text('request_id').notNullable();
    table.text('outcome').notNullable().checkIn(['pending', 'succeeded', 'failed', 'overtaken']);
    table.text('error');
    // Gateways that have reconciled this revision of the endpoint know of it.
    table.integer('revision').notNullable();
    // The version whose source becomes the draft once it serves, and the build that made it.
    table.integer('deployed_version');
    table.uuid('build_id');
    // True when it was made for this deployment: it goes when that fails.
    table.boolean('is_new_version').notNullable().defaultTo(false);
    // Source of the draft when the deployment was asked for: a draft changed since is kept.
    table.text('draft_source_key');
    table.timestamp('created_at').notNullable().defaultTo(knex.raw('clock_timestamp()'));
    table.timestamp('finished_at');
    table.index(['endpoint_id', 'position']);
  });
  await knex.raw(`CREATE INDEX deployments_pending ON deployments (created_at) WHERE outcome = 'pending'`);

  await knex.schema.alterTable('endpoints', (table) => {
    table.integer('latest_version');
    // Desired state; null: nothing should run.
    table.uuid('desired_deployment_id').references('deployments.id').index();
    // The last deployment that was seen running everywhere: what a failed one goes back to.
    table.uuid('confirmed_deployment_id').references('deployments.id').index();
  });
  await knex.schema.alterTable('observations', (table) => {
    // [{version, pid}]: the processes that serve.
    table.jsonb('serving').notNullable().defaultTo('[]');
  });
  await versionsOfWhatRuns(knex);
}

/** The source of an executable: that of the endpoint, if it was made of it, or of the build that made it. */
const SOURCES = `
  SELECT endpoints.id AS endpoint_id, wanted.artifact, wanted.is_latest,
         coalesce(own.source_key, build.source_key, artifacts.source_key, '') AS source_key,
         coalesce(own.code, build.code, '// The source of this version is not known any more.') AS code,
         coalesce(own.dependencies, build.dependencies, '{}') AS dependencies,
         row_number() OVER (PARTITION BY endpoints.id ORDER BY wanted.is_latest) AS version
    FROM endpoints
    JOIN LATERAL (
           SELECT desired_artifact AS artifact, desired_artifact IS NOT DISTINCT FROM endpoints.artifact AS is_latest
            WHERE desired_artifact IS NOT NULL
            UNION SELECT endpoints.artifact, true WHERE endpoints.artifact IS NOT NULL) wanted ON true
    LEFT JOIN LATERAL (
           SELECT source_key, code, dependencies
            WHERE code IS NOT NULL AND wanted.is_latest AND source_key = artifact_source_key) own ON true
    LEFT JOIN LATERAL (
           SELECT source_key, code, dependencies FROM builds WHERE builds.artifact = wanted.artifact
            ORDER BY finished_at DESC LIMIT 1) build ON true
    LEFT JOIN LATERAL (SELECT source_key FROM artifacts WHERE digest = wanted.artifact LIMIT 1) artifacts ON true`;

async function versionsOfWhatRuns(knex: Knex): Promise<void> {
  await knex.raw(
    `INSERT INTO endpoint_versions (endpoint_id, version, source_key, code, dependencies, artifact)
     SELECT endpoint_id, version, source_key, code, dependencies, artifact FROM (${SOURCES}) sources`,
  );
  await knex.raw(
    `UPDATE endpoints SET latest_version = newest.version
       FROM (SELECT endpoint_id, max(version) AS version FROM endpoint_versions GROUP BY endpoint_id) newest
      WHERE endpoints.id = newest.endpoint_id AND endpoints.artifact IS NOT NULL`,
  );
  await knex.raw(
    `INSERT INTO deployments (endpoint_id, kind, targets, request_id, outcome, revision, finished_at)
     SELECT id, 'start',
            jsonb_build_array(jsonb_build_object('version', 1, 'percent', 100, 'artifact', desired_artifact)),
            coalesce(desired_by, 'upgrade'), 'succeeded', version, clock_timestamp()
       FROM endpoints WHERE desired_artifact IS NOT NULL`,
  );
  await knex.raw(
    `UPDATE endpoints
        SET desired_deployment_id = deployments.id,
            confirmed_deployment_id = CASE WHEN confirmed_artifact = desired_artifact THEN deployments.id END
       FROM deployments WHERE deployments.endpoint_id = endpoints.id`,
  );
  await knex.raw(
    `UPDATE observations SET serving = jsonb_build_array(jsonb_build_object('version', 1, 'pid', pid))
      WHERE pid IS NOT NULL AND state = 'running'`,
  );
}

export async function down(knex: Knex): Promise<void> {
  await knex.schema.alterTable('endpoints', (table) => {
    table.dropColumn('latest_version');
    table.dropColumn('desired_deployment_id');
    table.dropColumn('confirmed_deployment_id');
  });
  await knex.schema.alterTable('observations', (table) => {
    table.dropColumn('serving');
  });
  await knex.schema.dropTable('deployments');
  await knex.schema.dropTable('endpoint_versions');
}
