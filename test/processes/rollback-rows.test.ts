/** Rollback of applies, where what their rows refer to is gone. */
import { expect } from 'chai';
import { type ApplyShown, applyFiles, folderOf, type PlanShown } from '../support/applies.js';
import { expectData, expectFailure } from '../support/expect.js';
import { numbered } from '../support/handler-sources.js';
import { call } from '../support/http.js';
import { withClient } from '../support/postgres.js';
import { type Stack, startStack } from '../support/processes.js';

describe('objects that an apply has removed', function () {
  this.timeout(120_000);
  let stack: Stack;
  before(async () => {
    stack = await startStack();
  });
  after(() => stack?.close());

  const applied = async (files: Record<string, string>, query = '') =>
    expectData<ApplyShown>(await applyFiles(stack.api, files, query));
  const planBack = (id: string) => stack.api.post(`/api/applies/${id}/rollback?dry_run=true`);
  const takeBack = async (id: string) => {
    const { plan_hash } = expectData<PlanShown>(await planBack(id));
    return expectData<ApplyShown>(await stack.api.post(`/api/applies/${id}/rollback?plan_hash=${plan_hash}`));
  };

  it('restores removed endpoints although their builds, documents and earlier applies are deleted', async () => {
    const host = 'forgotten.example';
    const spec = {
      openapi: '3.0.3',
      info: { title: 'T', version: '1' },
      paths: { '/doc': { get: { responses: {} } } },
    };
    const first = await applied(folderOf('forgotten', host, [{ route: '/a', code: numbered(1) }]));
    expectData(await stack.api.post('/api/import/openapi', { domain: host, spec: JSON.stringify(spec) }));
    await withClient(stack.databaseUrl, async (client) => {
      await client.query("UPDATE endpoints SET stack = 'forgotten' WHERE domain = $1", [host]);
      const removed = await applied(folderOf('forgotten', host, []), '&prune=true');
      expect(removed.outcome?.deleted).to.equal(2);
      await client.query('DELETE FROM imported_documents');
      await client.query('DELETE FROM builds');
      await client.query('DELETE FROM applies WHERE id = $1', [first.id]);
      expect((await takeBack(removed.id)).outcome?.created).to.equal(2);
    });
    const { text } = await call(`${stack.gatewayUrl}/a`, { method: 'POST', headers: { host } });
    expect(text.trim()).to.equal('1');
  });

  it('refuses to restore a removed service whose secret is deleted', async () => {
    const host = 'lost-secret.example';
    const secret = '/api/secrets/LOST';
    const value = { value: 'a secret' };
    expectData(await stack.api.put(secret, value));
    const service = {
      name: 'lost',
      service_type: 'redis',
      active: false,
      config: { host: 'h.example', password: { secret: 'LOST' } },
    };
    await applied(folderOf('lost', host, [], { services: [service] }));
    const { id } = await applied(folderOf('lost', host, []), '&prune=true');
    expectData(await stack.api.delete(secret));
    expectFailure(await planBack(id), 'apply_conflict', /service "lost".*deleted since.*LOST/);
    expectData(await stack.api.put(secret, value));
    const { plan_hash } = expectData<PlanShown>(await planBack(id));
    expectData(await stack.api.post(`/api/applies/${id}/rollback?plan_hash=${plan_hash}`));
    expectFailure(await stack.api.delete(secret), 'secret_in_use');
  });
});
