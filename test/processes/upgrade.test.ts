/** An installation from before there were versions is upgraded while its endpoints run: with real processes. */
import { expect } from 'chai';
import { openDatabase } from '../../src/store/database.js';
import { expectData } from '../support/expect.js';
import { numbered } from '../support/handler-sources.js';
import { call } from '../support/http.js';
import { type ProcessName, type Stack, startStack } from '../support/processes.js';

/** The first migration that knows of versions. */
const VERSIONS = '20261123000000';

describe('an upgrade from before there were versions', function () {
  this.timeout(120_000);
  let stack: Stack;
  before(async () => {
    stack = await startStack();
  });
  after(() => stack?.close());

  it('serves the endpoints of a release without versions as version 1, and can roll back to it', async () => {
    const { api } = stack;
    const id = await stack.deploy({ path: '/upgraded', code: numbered(1) });
    const stopped = await stack.deploy({ path: '/stopped', code: numbered(2) });
    expectData(await api.post(`/api/endpoints/${stopped}/stop`));
    const names = [...stack.processes.keys()] as ProcessName[];
    for (const name of names) await stack.processes.get(name)?.end();

    const database = openDatabase(stack.databaseUrl, () => undefined);
    try {
      while (String(await database.knex.migrate.currentVersion()) >= VERSIONS)
        await database.knex.migrate.down();
      expect(await database.knex.schema.hasTable('deployments')).to.equal(false);
      // What the processes of then wrote beside `desired_artifact`.
      await database.knex.raw(
        `UPDATE endpoints SET confirmed_artifact = desired_artifact, desired_by = 'then', status = 'running'
          WHERE desired_artifact IS NOT NULL`,
      );
      await database.knex.migrate.latest();
    } finally {
      await database.close();
    }
    for (const name of names) await stack.start(name);

    const answer = async (path: string) => (await call(`${stack.gatewayUrl}${path}`)).text.trim();
    const show = async () => expectData<Record<string, unknown>>(await api.get(`/api/endpoints/${id}`));
    expect(await answer('/upgraded')).to.equal('1');
    expect(await show()).to.include({ status: 'running', running_version: 1, latest_version: 1 });
    expectData(await api.post(`/api/endpoints/${stopped}/start`));
    expect(await answer('/stopped')).to.equal('2');
    const deployed = await api.post(`/api/endpoints/${id}/deploy`, { code: numbered(3) });
    expect(expectData(deployed)).to.include({ version: 2 });
    expect(await answer('/upgraded')).to.equal('3');
    expect(expectData(await api.post(`/api/endpoints/${id}/rollback`))).to.include({ version: 1 });
    expect(await answer('/upgraded')).to.equal('1');
  });
});
