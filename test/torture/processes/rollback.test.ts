/** The undoing and the rollback of applies, where others have changed something meanwhile. */
import { expect } from 'chai';
import pg from 'pg';
import { createSecretBox } from '../../../src/secrets/secret-box.js';
import { unusedArtifacts } from '../../../src/store/artifacts.js';
import { openDatabase } from '../../../src/store/database.js';
import {
  type ApplyShown,
  applyFiles,
  compileAhead,
  folderOf,
  holdRow,
  type PlanShown,
  planOf,
  showApply,
} from '../../support/applies.js';
import { eventually } from '../../support/eventually.js';
import { expectData, expectFailure } from '../../support/expect.js';
import { DIES_AT_START, numbered, slowToStart, until } from '../../support/handler-sources.js';
import { call } from '../../support/http.js';
import { type Stack, startStack } from '../../support/processes.js';

/** Does not start without NO_SUCH_VARIABLE. */
const NEEDY = DIES_AT_START.replace('Response::ok("ready")', 'Response::text(200, "ready")');
const SECRET_KEY = 'a key of these tests only';

describe('rollback of applies', function () {
  this.timeout(120_000);
  let stack: Stack;
  before(async () => {
    stack = await startStack({ env: { SECRET_KEY, JOBS_QUEUED_MB: '1' } });
  });
  after(() => stack?.close());

  const applied = async (files: Record<string, string>, query = '') =>
    expectData<ApplyShown>(await applyFiles(stack.api, files, query));
  const planBack = (id: string) => stack.api.post(`/api/applies/${id}/rollback?dry_run=true`);
  const takeBack = async (id: string) => {
    const plan = expectData<PlanShown>(await planBack(id));
    const path = `/api/applies/${id}/rollback?plan_hash=${plan.plan_hash}`;
    return { plan, back: expectData<ApplyShown>(await stack.api.post(path)) };
  };
  const make = async (domain: string, path: string, more: object = {}) =>
    expectData<{ id: string }>(
      await stack.api.post('/api/endpoints', { domain, path, method: 'GET', name: `GET ${path}`, ...more }),
      201,
    ).id;
  const serviceNamed = async (name: string) => {
    const found = expectData<{ id: string; name: string }[]>(await stack.api.get('/api/services'));
    return found.find((one) => one.name === name)?.id ?? '';
  };
  const sqlite = (name: string) => ({
    ...{ name, service_type: 'sqlite', active: false },
    config: { path: `${name}.db`, create_if_missing: true },
  });

  /** An apply whose new handler ends after the commit: it is undone. */
  const failingLate = async (
    name: string,
    more: { others?: string[]; services?: readonly [before: object, after: object] } = {},
  ) => {
    const host = `${name}.example`;
    const one = { route: '/one', code: null };
    const [before, after] = more.services ?? [];
    const first = folderOf(name, host, [one], before && { services: [before] });
    await applied(first);
    const list = expectData<{ id: string }[]>(await stack.api.get(`/api/endpoints?domain=${host}`));
    const held = await holdRow(stack.databaseUrl, list[0]?.id ?? '');
    await compileAhead(stack.api, until(2));
    // Until then, it has to be prepared.
    const over = Date.now() + 15_000;
    const files = folderOf(
      ...([name, host] as const),
      [
        { ...one, description: 'new' },
        { route: '/n', code: until(2), variables: { UNTIL: String(over) } },
      ],
      { domain: { description: 'new' }, ...(after && { services: [after] }) },
    );
    const edge = JSON.parse(files['edge.yaml'] ?? '');
    for (const other of more.others ?? []) edge.domains.push({ host: other });
    const folder = { ...files, 'edge.yaml': JSON.stringify(edge) };
    const accepted = await applyFiles(stack.api, folder, '', { prefer: 'respond-async' });
    const { id } = expectData<ApplyShown>(accepted, 202);
    await eventually(async () => expect((await showApply(stack.api, id)).state).to.equal('committing'));
    const release = async () => {
      await eventually(() => expect(Date.now()).to.be.above(over + 1_000));
      await held.release();
    };
    return { id, before: first, release };
  };
  const ended = async (id: string) => {
    await eventually(
      async () => expect((await showApply(stack.api, id)).finished_at).to.be.a('string'),
      60_000,
    );
    return showApply(stack.api, id);
  };

  it('keeps an endpoint of others in a domain of a failed apply when it is undone, and undoes the rest', async () => {
    const foreign = await make('undo-other.example', '/of-others');
    const { id, before, release } = await failingLate('undo', { others: ['undo-other.example'] });
    await release();
    const undone = await ended(id);
    expect(undone).to.include({ state: 'undone', error_code: 'handler_start_failed' });
    expect(undone.outcome?.warnings.join('\n')).to.match(
      /endpoint "GET undo-other\.example\/of-others" stays, but is in the domain "undo-other\.example"/,
    );
    expect((await planOf(stack.api, before)).changes).to.deep.equal([]);
    expectData(await stack.api.get(`/api/endpoints/${foreign}`));
    await applied(folderOf('undo-next', 'undo-next.example', []));
  });

  it('does not send a secret that was changed meanwhile where it was sent before a failed apply', async () => {
    const service = (host: string) => ({
      ...{ name: 'moved', service_type: 'redis', active: false },
      config: { host, password: { secret: 'MOVED' } },
    });
    expectData(await stack.api.put('/api/secrets/MOVED', { value: 'of staging' }));
    const services = [service('staging.example'), service('production.example')] as const;
    const { id, release } = await failingLate('moving', { services });
    // Waits for the commit.
    const changed = stack.api.put('/api/secrets/MOVED', { value: 'of production' });
    await release();
    expectData(await changed);
    const undone = await ended(id);
    expect(undone.state).to.equal('undone');
    expect(undone.outcome?.warnings.join('\n')).to.match(
      /service "moved": password changed since, and stays as it is; so does all of its config/,
    );
    const path = `/api/services/${await serviceNamed('moved')}`;
    expect(expectData<{ config: object }>(await stack.api.get(path)).config).to.include({
      host: 'production.example',
    });
  });

  it('gives up undoing an apply that fails again and again, and runs the next apply', async () => {
    // One attempt may fail before they are said to be too many.
    stack.processes.get('worker')?.logged.expectErrors(/undoing of an apply was given up|not in this test/);
    const client = new pg.Client({ connectionString: stack.databaseUrl });
    await client.connect();
    try {
      await client.query(`CREATE FUNCTION refuse_undoing() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'not in this test'; END $$`);
      await client.query(`CREATE TRIGGER refuse_undoing BEFORE UPDATE ON applies FOR EACH ROW
        WHEN (NEW.undone_at IS NOT NULL) EXECUTE FUNCTION refuse_undoing()`);
      const { id, release } = await failingLate('stuck');
      await release();
      await eventually(
        async () => expect((await showApply(stack.api, id)).state).to.equal('undoing'),
        30_000,
      );
      await client.query('UPDATE applies SET attempt = 10 WHERE id = $1', [id]);
      const given = await ended(id);
      expect(given).to.include({ state: 'not_undone', error_code: 'internal_error' });
      expect(given.error).to.match(/could not be undone in 10 attempts/);
    } finally {
      await client.query('DROP FUNCTION refuse_undoing CASCADE');
      await client.end();
    }
    await applied(folderOf('stuck-next', 'stuck-next.example', []));
  });

  it('refuses to roll back an apply while objects of others use what it would delete', async () => {
    const host = 'guarded.example';
    const { id } = await applied(folderOf('guarded', host, [], { services: [sqlite('guarded')] }));
    const endpoint = await make('hand-made.example', '/x');
    const service_id = await serviceNamed('guarded');
    const path = `/api/endpoints/${endpoint}/services`;
    expectData(await stack.api.post(path, { service_id, pool_id: 'db' }), 201);
    expectFailure(
      await planBack(id),
      'apply_conflict',
      /hand-made\.example\/x" stays, but has the service "guarded"/,
    );
    expect(expectData<object[]>(await stack.api.get(path))).to.have.length(1);
    expectData(await stack.api.delete(`/api/endpoints/${endpoint}`));
    const inside = await make(host, '/inside');
    expectFailure(await planBack(id), 'apply_conflict', /is in the domain "guarded\.example"/);
    expectData(await stack.api.delete(`/api/endpoints/${inside}`));
    const { back } = await takeBack(id);
    expect(back.outcome).to.include({ deleted: 2 });
  });

  it('fails an apply that would remove a service which others bound while its handlers start', async () => {
    const host = 'bound.example';
    await applied(folderOf('bound', host, [], { services: [sqlite('bound')] }));
    const endpoint = await make('binds-bound.example', '/x');
    const service_id = await serviceNamed('bound');
    const path = `/api/endpoints/${endpoint}/services`;
    const files = folderOf('bound', host, [{ route: '/s', code: slowToStart(4, 6) }]);
    const accepted = await applyFiles(stack.api, files, '&prune=true', { prefer: 'respond-async' });
    const { id } = expectData<ApplyShown>(accepted, 202);
    await eventually(
      async () => expect((await showApply(stack.api, id)).state).to.equal('preparing'),
      60_000,
    );
    expectData(await stack.api.post(path, { service_id, pool_id: 'db' }), 201);
    expect(await ended(id)).to.include({ state: 'failed', error_code: 'plan_changed' });
    expect(expectData<object[]>(await stack.api.get(path))).to.have.length(1);
  });

  it('refuses to roll back an apply whose schedules would take more than their domain may have by now', async () => {
    const host = 'scheduled.example';
    const large = { cron: '@daily', body: 'x'.repeat(600_000) };
    const folder = (schedules: object[]) =>
      folderOf('scheduled', host, [{ route: '/one', code: null, running: false, schedules }]);
    await applied(folder([large]));
    const { id } = await applied(folder([]));
    expectData(await planBack(id));
    const other = await make(host, '/other');
    expectData(await stack.api.post(`/api/endpoints/${other}/schedules`, large), 201);
    expectFailure(await planBack(id), 'apply_conflict', /scheduled\.example.*JOBS_QUEUED_MB/);
  });

  it('refuses to roll back an apply when endpoints of others would move', async () => {
    const host = 'moving.example';
    const folder = (base_path: string) =>
      folderOf('moving', host, [], { collections: [{ host, name: 'c', base_path }] });
    await applied(folder('/a'));
    const { id } = await applied(folder('/b'));
    const collections = expectData<{ id: string; base_path: string }[]>(
      await stack.api.get('/api/collections'),
    );
    const collection_id = collections.find(({ base_path }) => base_path === '/b')?.id;
    await make(host, '/h', { collection_id });
    expectFailure(
      await planBack(id),
      'apply_conflict',
      /moving\.example\/b\/h", which others have made, would move/,
    );
  });

  it('keeps a domain that was deleted and created again since the apply that is rolled back', async () => {
    const host = 'again.example';
    const { id } = await applied(folderOf('again', host, []));
    const domains = expectData<{ id: string }[]>(await stack.api.get(`/api/domains?search=${host}`));
    expectData(await stack.api.delete(`/api/domains/${domains[0]?.id}`));
    expectData(await stack.api.post('/api/domains', { name: host, host }), 201);
    const plan = expectData<PlanShown>(await planBack(id));
    expect(plan.changes).to.deep.equal([]);
    expect(plan.warnings.join()).to.match(/domain "again\.example": was made again since, and stays/);
  });

  const ask = async (host: string, n = 1) => {
    const answers = new Set<string>();
    for (let at = 0; at < n; at++) {
      const { text } = await call(`${stack.gatewayUrl}/a`, { method: 'POST', headers: { host } });
      answers.add(text.trim());
    }
    return [...answers].sort();
  };

  it('restores two versions that served together when an apply is rolled back', async () => {
    const host = 'canary.example';
    const folder = (code: string) => folderOf('canary', host, [{ route: '/a', code }]);
    await applied(folder(numbered(1)));
    const list = expectData<{ id: string }[]>(await stack.api.get(`/api/endpoints?domain=${host}`));
    const endpoint = `/api/endpoints/${list[0]?.id}`;
    expectData(await stack.api.post(`${endpoint}/deploy`, { percent: 50, code: numbered(2) }));
    expect(await ask(host, 40)).to.deep.equal(['1', '2']);
    const { id } = await applied(folder(numbered(3)));
    expect(await ask(host)).to.deep.equal(['3']);
    const { plan } = await takeBack(id);
    expect(plan.changes[0]?.fields.find(({ path }) => path === 'running')?.after).to.equal('other');
    expect(await ask(host, 40)).to.deep.equal(['1', '2']);
  });

  it('restores an older version that served, also of an endpoint that the apply removed', async () => {
    const host = 'pinned.example';
    const folder = (code: string, more: object = {}) =>
      folderOf('pinned', host, [{ route: '/a', code, ...more }]);
    await applied(folder(numbered(1)));
    await applied(folder(numbered(2)));
    const list = expectData<{ id: string }[]>(await stack.api.get(`/api/endpoints?domain=${host}`));
    const endpoint = `/api/endpoints/${list[0]?.id}`;
    expectData(await stack.api.post(`${endpoint}/rollback`, {}));
    expect(await ask(host)).to.deep.equal(['1']);
    const { id } = await applied(folder(numbered(2), { description: 'new' }));
    expect(await ask(host)).to.deep.equal(['2']);
    await takeBack(id);
    expect(await ask(host)).to.deep.equal(['1']);
    const removed = await applied(folderOf('pinned', host, []), '&prune=true');
    await eventually(async () => expect(await ask(host)).not.to.deep.equal(['1']));
    await takeBack(removed.id);
    expect(await ask(host)).to.deep.equal(['1']);
  });

  it('prepares older versions for a rollback of an apply, and changes nothing when one does not start', async () => {
    const host = 'prepared.example';
    const folder = (code: string, more: object = {}) =>
      folderOf('prepared', host, [{ route: '/a', code, ...more }]);
    await applied(folderOf('prepared', host, [{ route: '/a', code: null }]));
    const list = expectData<{ id: string }[]>(await stack.api.get(`/api/endpoints?domain=${host}`));
    const secret = `/api/endpoints/${list[0]?.id}/secrets/NO_SUCH_VARIABLE`;
    expectData(await stack.api.put(secret, { value: 'without it, the first version does not start' }));
    await applied(folder(NEEDY));
    await applied(folder(numbered(2)));
    expectData(await stack.api.post(`/api/endpoints/${list[0]?.id}/rollback`, {}));
    expect(await ask(host)).to.deep.equal(['ready']);
    const { id } = await applied(folder(numbered(2), { description: 'new' }));
    const { plan, back } = await takeBack(id);
    expect(plan.changes[0]?.fields.find(({ path }) => path === 'running')?.after).to.equal('other');
    expect(back.progress['prepared']).to.deep.equal({ done: 1, of: 1 });
    expect(await ask(host)).to.deep.equal(['ready']);
    const again = await applied(folder(numbered(2), { description: 'newer' }));
    expectData(await stack.api.delete(secret));
    const { plan_hash } = expectData<PlanShown>(await planBack(again.id));
    const path = `/api/applies/${again.id}/rollback?plan_hash=${plan_hash}`;
    expectFailure(
      await stack.api.post(path),
      'handler_start_failed',
      /prepared\.example.*Nothing was changed/s,
    );
    expect(await ask(host)).to.deep.equal(['2']);
  });

  it('prepares a removed endpoint for a rollback of an apply with its restored secrets', async () => {
    const host = 'secretive.example';
    await applied(folderOf('secretive', host, [{ route: '/a', code: null }]));
    const list = expectData<{ id: string }[]>(await stack.api.get(`/api/endpoints?domain=${host}`));
    const secret = `/api/endpoints/${list[0]?.id}/secrets/NO_SUCH_VARIABLE`;
    expectData(await stack.api.put(secret, { value: 'shown to nobody' }));
    await applied(folderOf('secretive', host, [{ route: '/a', code: NEEDY }]));
    expect(await ask(host)).to.deep.equal(['ready']);
    const removed = await applied(folderOf('secretive', host, []), '&prune=true');
    const { back } = await takeBack(removed.id);
    expect(back.progress['prepared']).to.deep.equal({ done: 1, of: 1 });
    expect(await ask(host)).to.deep.equal(['ready']);
  });

  it('keeps the executable of an endpoint that an apply removed, for a rollback', async () => {
    const host = 'kept.example';
    const folder = (code: string) => folderOf('kept', host, [{ route: '/a', code }]);
    await applied(folder(numbered(71)));
    await applied(folder(numbered(72)));
    const list = expectData<{ id: string }[]>(await stack.api.get(`/api/endpoints?domain=${host}`));
    expectData(await stack.api.post(`/api/endpoints/${list[0]?.id}/rollback`, {}));
    const store = openDatabase(stack.databaseUrl, (error) => expect.fail(error.message));
    try {
      const { rows } = await store.knex.raw(
        `SELECT targets->0->>'artifact' AS artifact FROM deployments JOIN endpoints ON desired_deployment_id = deployments.id
          WHERE endpoints.id = ?`,
        [list[0]?.id ?? ''],
      );
      await applied(folderOf('kept', host, []), '&prune=true');
      await store.knex('builds').where({ artifact: rows[0].artifact }).delete();
      expect(await unusedArtifacts(store, 0)).not.to.include(rows[0].artifact);
    } finally {
      await store.close();
    }
  });

  it('keeps a password that was changed since the apply that is rolled back, and warns of it', async () => {
    const config = (host: string, password: unknown) => ({ host, database: 'd', username: 'u', password });
    const folder = (host: string, password: unknown) => {
      const shop = {
        name: 'rotated',
        service_type: 'postgres',
        active: false,
        config: config(host, password),
      };
      return folderOf('rotated', 'rotated.example', [], { services: [shop] });
    };
    await stack.api.put('/api/secrets/ROTATED', { value: 'first' });
    await applied(folder('h1.example', { secret: 'ROTATED' }));
    const path = `/api/services/${await serviceNamed('rotated')}`;
    const sealed = async () => {
      const client = new pg.Client({ connectionString: stack.databaseUrl });
      await client.connect();
      const { rows } = await client.query("SELECT config_encrypted FROM services WHERE name = 'rotated'");
      await client.end();
      return JSON.parse(createSecretBox(SECRET_KEY).open(rows[0].config_encrypted));
    };
    expectData(await stack.api.put(path, { config: config('h1.example', 'by hand 1') }));
    const first = await applied(folder('h2.example', { stored: true }));
    expectData(await stack.api.put(path, { config: config('h2.example', 'by hand 2') }));
    const { plan } = await takeBack(first.id);
    expect(plan.warnings.join()).to.match(/service "rotated": password changed since, and stays/);
    expect(await sealed()).to.include({ host: 'h1.example', password: 'by hand 2' });
    const second = await applied(folder('h3.example', { stored: true }));
    expect((await takeBack(second.id)).plan.warnings).to.deep.equal([]);
    expect(await sealed()).to.include({ host: 'h1.example', password: 'by hand 2' });
  });
});
