/** The history of endpoints does not grow for ever. */
import { expect } from 'chai';
import { tidyHistory } from '../../jobs/recover-deployments.js';
import { ENDPOINT_DEFAULTS } from '../../src/api/endpoints/endpoints.schema.js';
import { ONE_FILE } from '../../src/model/source-files.js';
import type { Database } from '../../src/store/database.js';
import { confirmDeployment } from '../../src/store/deployment-outcomes.js';
import { listDeployments, requestDeployment } from '../../src/store/deployments.js';
import { createEndpoint } from '../../src/store/endpoints.js';
import { claimJob, finishJob, insertJob, latestJobs } from '../../src/store/jobs.js';
import { addVersions, listVersions } from '../../src/store/versions.js';
import { createTestLog } from '../support/log.js';
import { ORIGIN } from '../support/origin.js';
import { useTestStore } from '../support/store.js';

describe('the history of an endpoint', () => {
  let store: Database;
  useTestStore((opened) => {
    store = opened;
  });

  it('keeps the newest versions and deployments of an endpoint, and those that serve', async () => {
    const endpoint = { name: 'E', path: '/history', method: 'GET', domain: '*' } as const;
    const { id } = await createEndpoint(store, { ...ENDPOINT_DEFAULTS, ...endpoint });
    for (let number = 1; number <= 25; number++) {
      const source = {
        sourceKey: `key ${number}`,
        code: '',
        dependencies: {},
        ...ONE_FILE,
        artifact: `artifact ${number}`,
        actor: ORIGIN.actor,
      };
      await addVersions(store, [id], source);
    }
    const deploy = async (version: number) => {
      const targets = [{ version, percent: 100, artifact: `artifact ${version}` }];
      const requested = await requestDeployment(store, {
        ...{ endpointId: id, kind: 'rollback', targets, origin: ORIGIN },
      });
      return typeof requested === 'object' ? requested.id : expect.fail('not requested');
    };
    const serving = await deploy(2);
    await confirmDeployment(store, id, serving);
    for (let number = 0; number < 12; number++) await deploy(25);
    expect((await listDeployments(store, id)).length).to.equal(13);

    const { log } = createTestLog();
    for (let round = 0; round < 2; round++) {
      await tidyHistory(store, { VERSIONS_KEPT: 20, DEPLOYMENTS_KEPT: 10, JOBS_KEPT_HOURS: 1 }, log);
      const versions = (await listVersions(store, id)).rows.map(({ version }) => version);
      expect(versions).to.deep.equal([...Array.from({ length: 20 }, (_, at) => 25 - at), 2]);
      const deployments = await listDeployments(store, id);
      expect(deployments).to.have.length(11);
      expect(deployments.at(-1)?.id).to.equal(serving);
      expect(deployments.at(0)?.outcome).to.equal('pending');
    }
  });

  it('keeps queued requests that have not ended, and those that ended a short time ago', async () => {
    const endpoint = { name: 'E', path: '/jobs', method: 'GET', domain: '*' } as const;
    const { id } = await createEndpoint(store, { ...ENDPOINT_DEFAULTS, ...endpoint });
    const queue = async () => {
      const request = { method: 'GET', path: '/jobs', headers: {}, body: Buffer.alloc(0) };
      const settings = { maxAttempts: 1, backoffMs: 0, delayMs: 0, deduplicationId: null, requestId: 'r' };
      const job = await insertJob(
        store,
        { endpointId: id, request, principal: null, ...settings },
        { jobs: 10, bytes: 2 ** 30 },
      );
      return 'full' in job ? expect.fail('not queued') : job;
    };
    const [waiting, recent, old] = [await queue(), await queue(), await queue()];
    for (const job of [recent, old]) {
      await claimJob(store, job, id);
      await finishJob(store, job, 'succeeded', { status: 200, error: null });
    }
    await store.knex.raw(`UPDATE jobs SET finished_at = finished_at - interval '2 hours' WHERE id = ?`, [
      old.id,
    ]);

    const { log } = createTestLog();
    await tidyHistory(store, { VERSIONS_KEPT: 20, DEPLOYMENTS_KEPT: 10, JOBS_KEPT_HOURS: 1 }, log);
    const kept = (await latestJobs(store, { endpoint_id: id }, 10)).map((job) => job.id);
    expect(new Set(kept)).to.deep.equal(new Set([waiting.id, recent.id]));
  });
});
