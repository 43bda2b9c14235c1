/** The history of endpoints does not grow for ever. */
import { expect } from 'chai';
import { tidyHistory } from '../../jobs/recover-deployments.js';
import { ENDPOINT_DEFAULTS } from '../../src/api/endpoints/schema.js';
import type { Database } from '../../src/store/database.js';
import { confirmDeployment, listDeployments, requestDeployment } from '../../src/store/deployments.js';
import { createEndpoint } from '../../src/store/endpoints.js';
import { addVersions, listVersions } from '../../src/store/versions.js';
import { createTestLog } from '../support/log.js';
import { useTestStore } from '../support/store.js';

describe('the history of an endpoint', () => {
  let store: Database;
  useTestStore((opened) => {
    store = opened;
  });

  it('has the newest versions and deployments, and those that serve', async () => {
    const endpoint = { name: 'E', path: '/history', method: 'GET', domain: '*' } as const;
    const { id } = await createEndpoint(store, { ...ENDPOINT_DEFAULTS, ...endpoint });
    for (let number = 1; number <= 25; number++) {
      const source = {
        sourceKey: `key ${number}`,
        code: '',
        dependencies: {},
        artifact: `artifact ${number}`,
      };
      await addVersions(store, [id], source);
    }
    const deploy = async (version: number) => {
      const targets = [{ version, percent: 100, artifact: `artifact ${version}` }];
      const requested = await requestDeployment(store, {
        ...{ endpointId: id, kind: 'rollback', targets, requestId: 'r' },
      });
      return typeof requested === 'object' ? requested.id : expect.fail('not requested');
    };
    const serving = await deploy(2);
    await confirmDeployment(store, id, serving);
    for (let number = 0; number < 12; number++) await deploy(25);

    const { log } = createTestLog();
    for (let round = 0; round < 2; round++) {
      await tidyHistory(store, { VERSIONS_KEPT: 20, DEPLOYMENTS_KEPT: 10 }, log);
      const versions = (await listVersions(store, id)).map(({ version }) => version);
      expect(versions).to.deep.equal([...Array.from({ length: 20 }, (_, at) => 25 - at), 2]);
      const deployments = await listDeployments(store, id);
      expect(deployments).to.have.length(11);
      expect(deployments.at(-1)?.id).to.equal(serving);
      expect(deployments.at(0)?.outcome).to.equal('pending');
    }
  });
});
