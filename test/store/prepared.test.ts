/** Statements that connections have prepared go on after a migration has added columns. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { ENDPOINT_DEFAULTS } from '../../src/api/endpoints/schema.js';
import { findArtifact, saveArtifact } from '../../src/store/artifacts.js';
import { claimBuild, finishBuild, requestBuild } from '../../src/store/builds.js';
import type { Database } from '../../src/store/database.js';
import { confirmDeployment } from '../../src/store/deployment-outcomes.js';
import { requestDeployment } from '../../src/store/deployments.js';
import { observedRun, routedEndpoints } from '../../src/store/endpoint-runs.js';
import { createEndpoint, findSource } from '../../src/store/endpoints.js';
import { advanceHandler, claimHandler, finishHandler } from '../../src/store/import-handlers.js';
import { findImport, finishImport, recordImport } from '../../src/store/imports.js';
import { registerNode } from '../../src/store/nodes.js';
import { saveObservations } from '../../src/store/observations.js';
import { ORIGIN } from '../support/origin.js';
import { useTestStore } from '../support/store.js';

const TABLES = ['endpoints', 'builds', 'artifacts', 'deployments', 'endpoint_versions', 'observations'];
const MORE_TABLES = ['nodes', 'imports', 'import_handlers', 'collections', 'domains', 'variables'];

describe('prepared statements', () => {
  let store: Database;
  useTestStore((opened) => {
    store = opened;
  });

  /** All that happens to a handler of a bundle, on whatever connection is free. */
  async function importHandler(node: string, path: string): Promise<void> {
    const endpoint = { name: path, path, method: 'GET', domain: '*', code: `// ${path}` } as const;
    const created = await createEndpoint(store, { ...ENDPOINT_DEFAULTS, ...endpoint });
    const endpointId = created.id;
    const importId = randomUUID();
    const imported = { id: endpointId, name: path, handler: 'handlers/one.rs' };
    await recordImport(store, {
      ...{ id: importId, title: 'T', compile: true, start: true, request_id: ORIGIN.requestId },
      outcome: {
        ...{ collection: null, created: 1, updated: 0, problems: [], warnings: [] },
        endpoints: [imported as never],
      },
    });
    const attempt = { importId, endpointId, attempt: 1 };
    expect(await claimHandler(store, attempt, node)).to.include({ start: true });

    const source = await findSource(store, endpointId);
    if (!source) throw new Error('there is no source');
    const { source_key: sourceKey, code } = source;
    expect(await findArtifact(store, sourceKey, 'toolchain')).to.equal(undefined);
    const request = { endpointId, sourceKey, code: code ?? '', dependencies: {}, origin: ORIGIN };
    const build = await requestBuild(store, request);
    await advanceHandler(store, attempt, { state: 'compiling', buildId: build.id });
    expect(await claimBuild(store, build, node)).to.include({ id: build.id, code });
    const artifact = { source_key: sourceKey, toolchain: 'toolchain', digest: `digest of ${path}`, size: 1 };
    await saveArtifact(store, { ...artifact, diagnostics: [] });
    const succeeded = { state: 'succeeded', artifact: artifact.digest, cached: false } as const;
    expect(await finishBuild(store, build, { ...succeeded, diagnostics: [], timings: {} })).to.equal(true);
    expect(await findArtifact(store, sourceKey, 'toolchain')).to.deep.equal({ ...artifact, diagnostics: [] });

    const start = { endpointId, kind: 'start', targets: null, origin: ORIGIN } as const;
    const deployment = await requestDeployment(store, start);
    if (typeof deployment !== 'object') throw new Error('nothing is deployed');
    const [routed] = await routedEndpoints(store, [endpointId]);
    expect(routed?.deployment).to.include({ id: deployment.id, confirmed: false });
    const { revision } = deployment;
    const observed = { endpoint_id: endpointId, state: 'running', revision, error: null } as const;
    await saveObservations(store, node, [{ ...observed, serving: [], versions: [] }]);
    expect((await observedRun(store, endpointId))?.observations).to.have.length(1);
    await confirmDeployment(store, endpointId, deployment.id);
    expect((await routedEndpoints(store, [endpointId]))[0]?.deployment).to.include({ confirmed: true });

    expect(await finishHandler(store, attempt, { state: 'started' })).to.equal(true);
    expect(await finishImport(store, importId)).to.equal(true);
    expect(await findImport(store, importId)).to.deep.include({
      state: 'succeeded',
      statuses: { [endpointId]: 'running' },
    });
  }

  it('go on when tables have got columns', async () => {
    const node = randomUUID();
    await registerNode(store, { id: node, kind: 'gateway', hostname: 'one', pid: 1, info: {} });
    // Often enough that PostgreSQL has planned them for all values.
    for (let round = 0; round < 8; round++) await importHandler(node, `/before/${round}`);
    const { rows } = await store.knex.raw<{ rows: { count: number }[] }>(
      'SELECT count(*) FROM pg_prepared_statements',
    );
    expect(rows[0]?.count).to.be.greaterThan(15);
    for (const table of [...TABLES, ...MORE_TABLES])
      await store.knex.raw(`ALTER TABLE ${table} ADD COLUMN added_later text`);
    await importHandler(node, '/after');
  });
});
