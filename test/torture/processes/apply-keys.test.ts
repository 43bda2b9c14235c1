/** SECRET_KEY is rotated between an apply and its rollback. */
import { expect } from 'chai';
import { createSecretBox } from '../../../src/secrets/secret-box.js';
import { type ApplyShown, applyFiles, folderOf, type PlanShown } from '../../support/applies.js';
import { eventually } from '../../support/eventually.js';
import { expectData } from '../../support/expect.js';
import { DIES_AT_START } from '../../support/handler-sources.js';
import { call } from '../../support/http.js';
import { withClient } from '../../support/postgres.js';
import { type Stack, startStack } from '../../support/processes.js';

const OLD = 'the old key of these tests';
const NEW = 'the new key of these tests';
const HOST = 'keys.example';
/** Starts with its secret only. */
const NEEDY = DIES_AT_START.replace('Response::ok("ready")', 'Response::text(200, "ready")');

describe('rollback of an apply after a rotation of SECRET_KEY', function () {
  this.timeout(180_000);
  let stack: Stack;
  before(async () => {
    stack = await startStack({ env: { SECRET_KEY: OLD } });
  });
  after(() => stack?.close());

  const restart = async (env: Record<string, string>) => {
    for (const name of ['gateway', 'actor-host', 'worker', 'web'] as const) {
      await stack.processes.get(name)?.end();
      await stack.start(name, env);
    }
  };
  const service = (host: string) => ({
    name: 'keys',
    service_type: 'postgres',
    active: false,
    config: { host, database: 'd', username: 'u', password: { stored: true } },
  });
  const ask = async () =>
    (await call(`${stack.gatewayUrl}/a`, { method: 'POST', headers: { host: HOST } })).text;

  it('restores earlier secrets when an apply is rolled back after a rotation of SECRET_KEY', async () => {
    const post = async (path: string, body: object) =>
      expectData<{ id: string }>(await stack.api.post(path, body), 201).id;
    const config = { host: 'h1.example', database: 'd', username: 'u', password: 'as it was' };
    const serviceId = await post('/api/services', {
      name: 'keys',
      service_type: 'postgres',
      config,
      stack: 'keys',
    });
    const folder = (endpoints: { route: string; code: string | null }[], host: string) =>
      folderOf('keys', HOST, endpoints, { services: [service(host)] });
    expectData(await applyFiles(stack.api, folder([{ route: '/a', code: null }], 'h1.example')));
    const [endpoint] = expectData<{ id: string }[]>(await stack.api.get(`/api/endpoints?domain=${HOST}`));
    expectData(
      await stack.api.put(`/api/endpoints/${endpoint?.id}/secrets/NO_SUCH_VARIABLE`, { value: 'hidden' }),
    );
    expectData(await applyFiles(stack.api, folder([{ route: '/a', code: NEEDY }], 'h1.example')));
    const { id } = expectData<ApplyShown>(
      await applyFiles(stack.api, folder([], 'h2.example'), '&prune=true'),
    );
    expectData(
      await stack.api.put(`/api/services/${serviceId}`, { config: { ...config, host: 'h2.example' } }),
    );

    await restart({ SECRET_KEY: NEW, SECRET_KEY_PREVIOUS: OLD });
    await eventually(async () => {
      const health = expectData<{ key_rotation: unknown }>(await stack.api.get('/api/health'));
      expect(health.key_rotation).to.deep.equal({ left: 0 });
    }, 60_000);
    await restart({ SECRET_KEY: NEW });

    const path = `/api/applies/${id}/rollback`;
    const plan = expectData<PlanShown>(await stack.api.post(`${path}?dry_run=true`));
    expect(plan.warnings).to.deep.equal([]);
    expectData(await stack.api.post(`${path}?plan_hash=${plan.plan_hash}`));
    expect(await ask()).to.equal('ready');
    await withClient(stack.databaseUrl, async (client) => {
      const { rows } = await client.query('SELECT config_encrypted FROM services WHERE id = $1', [serviceId]);
      expect(JSON.parse(createSecretBox(NEW).open(rows[0].config_encrypted))).to.include({
        host: 'h1.example',
        password: 'as it was',
      });
    });
  });
});
