/** Applies over HTTP, with real processes: all or nothing. */
import { expect } from 'chai';
import {
  type ApplyShown,
  applyFiles,
  compileAhead,
  folderOf,
  holdRow,
  type PlanShown,
  planOf,
  showApply,
} from '../support/applies.js';
import { eventually } from '../support/eventually.js';
import { expectData, expectFailure } from '../support/expect.js';
import { DIES_AT_START, greeting, numbered, until } from '../support/handler-sources.js';
import { call } from '../support/http.js';
import { startLoad } from '../support/load.js';
import { freePort } from '../support/ports.js';
import { descendantsOf, isRunning } from '../support/process-state.js';
import { type Stack, startStack } from '../support/processes.js';

describe('applies', function () {
  this.timeout(120_000);
  let stack: Stack;
  before(async () => {
    stack = await startStack();
  });
  after(() => stack?.close());

  const ask = async (host: string, path: string) => {
    const { status, text } = await call(`${stack.gatewayUrl}${path}`, { method: 'POST', headers: { host } });
    return `${status} ${text.trim()}`;
  };

  it('creates everything of a folder in an apply, and serves it', async () => {
    const host = 'made.example';
    const files = folderOf('made', host, [
      { route: '/one', code: numbered(1) },
      { route: '/two', code: numbered(2), running: false },
    ]);
    const applied = expectData<ApplyShown>(await applyFiles(stack.api, files));
    expect(applied.state).to.equal('succeeded');
    expect(applied.outcome).to.deep.include({ created: 3, updated: 0, deleted: 0, deployed: 1 });
    expect(await ask(host, '/one')).to.equal('200 1');
    expect((await planOf(stack.api, files)).changes).to.deep.equal([]);
  });

  it('leaves everything as it was when one handler of an apply does not compile, and shows its errors', async () => {
    const host = 'compiles.example';
    const before = folderOf('compiles', host, [{ route: '/a', code: numbered(1) }]);
    expectData(await applyFiles(stack.api, before));
    const after = folderOf('compiles', host, [
      { route: '/a', code: numbered(3) },
      { route: '/b', code: 'fn handle() { this is not Rust }' },
    ]);
    const response = await applyFiles(stack.api, after);
    expectFailure(response, 'compile_failed', /endpoint "POST compiles\.example\/b".*expected/s);
    const { details } = response.body as {
      details: { apply_id: string; endpoints: { diagnostics: object[] }[] };
    };
    expect(details.endpoints).to.have.length(1);
    expect(JSON.stringify(details.endpoints[0]?.diagnostics)).to.match(/"level":"error".*"line":1/);
    expect(await showApply(stack.api, details.apply_id)).to.include({
      state: 'failed',
      error_code: 'compile_failed',
    });
    expect(await ask(host, '/a')).to.equal('200 1');
    expect((await planOf(stack.api, before)).changes).to.deep.equal([]);
  });

  it('leaves everything as it was when one handler of an apply does not start', async () => {
    const host = 'starts.example';
    const before = folderOf('starts', host, [{ route: '/a', code: numbered(1) }]);
    expectData(await applyFiles(stack.api, before));
    const after = folderOf('starts', host, [
      { route: '/a', code: numbered(3) },
      { route: '/b', code: DIES_AT_START },
    ]);
    expectFailure(
      await applyFiles(stack.api, after),
      'handler_start_failed',
      /endpoint "POST starts\.example\/b": The handler did not start.*the config is missing/s,
    );
    expect(await ask(host, '/a')).to.equal('200 1');
    expect((await planOf(stack.api, before)).changes).to.deep.equal([]);
  });

  it('refuses an apply without a plan hash, or with that of an outdated plan', async () => {
    const host = 'planned.example';
    const files = folderOf('planned', host, [{ route: '/a', code: null, name: 'a' }]);
    const { plan_hash } = await planOf(stack.api, files);
    await stack.api.post('/api/domains', { name: 'x', host });
    expectFailure(
      await stack.api.post(`/api/apply?plan_hash=${plan_hash}&adopt=true`, { files }),
      'plan_changed',
    );
    expectFailure(await stack.api.post('/api/apply?adopt=true', { files }), 'invalid_input', /plan_hash/);
    expectData(await applyFiles(stack.api, files, '&adopt=true'));
  });

  it('writes every kind of object in an apply, and removes with prune what the folder no longer has', async () => {
    const host = 'all.example';
    await stack.api.put('/api/secrets/APPLY_SECRET', { value: 'hidden value' });
    const service = {
      name: 'all of redis',
      service_type: 'redis',
      config: { host: '127.0.0.1', port: 1, password: { secret: 'APPLY_SECRET' } },
      domains: [host],
    };
    const schedule = { cron: '0 5 * * *', timezone: 'UTC', method: 'POST', path: '/pets/all' };
    const more = {
      domain: { variables: { GREETING: 'of the domain' }, policies: { ip: { allow: ['127.0.0.0/8'] } } },
      secrets: ['APPLY_SECRET'],
      services: [service],
      collections: [{ host, name: 'pets', base_path: '/pets', variables: { GREETING: 'of pets' } }],
    };
    const pets = { collection: 'pets', path: '/all', route: undefined as never, name: 'all' };
    const first = { ...pets, code: greeting(1), bindings: { cache: 'all of redis' }, schedules: [schedule] };
    const second = { route: '/other', code: greeting(1), limits: { timeout_ms: 1000 } };
    const whole = folderOf('all', host, [first, second], more);
    const applied = expectData<ApplyShown>(await applyFiles(stack.api, whole));
    expect(applied.outcome).to.deep.include({ created: 5, deployed: 2 });
    expect(JSON.stringify(applied)).not.to.include('hidden value');
    expect((await planOf(stack.api, whole)).changes).to.deep.equal([]);
    expect(await ask(host, '/pets/all')).to.equal('200 1 of pets');
    expect(await ask(host, '/other')).to.equal('200 1 of the domain');

    const changed = folderOf('all', host, [{ ...first, schedules: [], variables: { GREETING: 'own' } }], {
      ...more,
      services: [{ ...service, config: { ...service.config, port: 2 } }],
      domain: { variables: { GREETING: 'changed' } },
    });
    const kept = expectData<ApplyShown>(await applyFiles(stack.api, changed));
    expect(kept.outcome).to.deep.include({ created: 0, updated: 3, deleted: 0 });
    expect(await ask(host, '/pets/all')).to.equal('200 1 own');
    expect(await ask(host, '/other')).to.equal('200 1 changed');
    const pruned = expectData<ApplyShown>(await applyFiles(stack.api, changed, '&prune=true'));
    expect(pruned.outcome).to.deep.include({ created: 0, updated: 0, deleted: 1 });
    await eventually(async () => expect(await ask(host, '/other')).to.match(/^404/));
    const nothing = folderOf('all', host, [], { domain: more.domain });
    const rest = { 'edge.yaml': JSON.stringify({ ...JSON.parse(nothing['edge.yaml'] ?? ''), domains: [] }) };
    expectData(await applyFiles(stack.api, rest, '&prune=true'));
    expect((await planOf(stack.api, rest, '&prune=true')).changes).to.deep.equal([]);
  });

  it('rolls an apply back, with what it deleted, except what others have changed since', async () => {
    const host = 'back.example';
    const more = { collections: [{ host, name: 'c', base_path: '/c' }] };
    const one = { collection: 'c', path: '/one', route: undefined as never, code: greeting(1) };
    const two = { route: '/two', code: greeting(2), variables: { GREETING: 'two' } };
    const before = folderOf('back', host, [one, two], more);
    expectData(await applyFiles(stack.api, before));
    const list = await stack.api.get('/api/endpoints?domain=back.example');
    const ids = new Map(expectData<{ id: string; path: string }[]>(list).map(({ id, path }) => [path, id]));
    const [oneId, twoId] = [ids.get('/one'), ids.get('/two')];
    expectData(await stack.api.put(`/api/endpoints/${oneId}/secrets/GREETING`, { value: 'secret' }));
    expect(await ask(host, '/c/one')).to.equal('200 1 secret');

    const after = folderOf('back', host, [{ ...two, code: greeting(3), description: 'new' }]);
    const applied = expectData<ApplyShown>(await applyFiles(stack.api, after, '&prune=true'));
    expect(applied.outcome).to.deep.include({ updated: 1, deleted: 2, deployed: 1 });
    await eventually(async () => expect(await ask(host, '/c/one')).to.match(/^404/));
    expect(await ask(host, '/two')).to.equal('200 3 two');
    await stack.api.put(`/api/endpoints/${twoId}`, { description: 'of somebody else' });

    const at = `/api/applies/${applied.id}/rollback`;
    const plan = expectData<PlanShown>(await stack.api.post(`${at}?dry_run=true`));
    expect(plan.changes.map(({ action, name }) => `${action} ${name}`)).to.have.members([
      'create back.example/c',
      'create POST back.example/c/one',
      'update POST back.example/two',
    ]);
    expect(plan.warnings).to.have.length(1);
    expect(plan.warnings[0]).to.match(/description was changed since/);
    expectFailure(await stack.api.post(`${at}?plan_hash=${'0'.repeat(64)}`), 'plan_changed');
    const back = expectData<ApplyShown>(await stack.api.post(`${at}?plan_hash=${plan.plan_hash}`));
    expect(back).to.include({ state: 'succeeded', rollback_of: applied.id });
    expect(await ask(host, '/c/one')).to.equal('200 1 secret');
    expect(await ask(host, '/two')).to.equal('200 2 two');
    const { description } = expectData<{ description: string }>(
      await stack.api.get(`/api/endpoints/${twoId}`),
    );
    expect(description).to.equal('of somebody else');
    expect(expectData<{ id: string }>(await stack.api.get(`/api/endpoints/${oneId}`)).id).to.equal(oneId);
  });

  it('undoes an apply when a gateway cannot run a handler after the commit', async () => {
    const host = 'undone.example';
    const one = { route: '/one', code: numbered(1) };
    const before = folderOf('undone', host, [one, { route: '/gone', code: numbered(2) }]);
    expectData(await applyFiles(stack.api, before));
    const list = expectData<{ id: string }[]>(await stack.api.get('/api/endpoints?domain=undone.example'));
    const held = await holdRow(stack.databaseUrl, list[0]?.id ?? '');
    const handlers = () =>
      descendantsOf(stack.processes.get('gateway')?.pid ?? 0)
        .filter(({ command }) => command.includes('/launcher '))
        .map(({ pid }) => pid);
    const serving = handlers();
    for (const code of [numbered(3), until(4)]) await compileAhead(stack.api, code);
    const over = Date.now() + 15_000;
    const after = folderOf('undone', host, [
      { ...one, code: numbered(3), description: 'new' },
      { route: '/new', code: until(4), variables: { UNTIL: String(over) } },
    ]);
    const accepted = await applyFiles(stack.api, after, '&prune=true', { prefer: 'respond-async' });
    const { id } = expectData<ApplyShown>(accepted, 202);
    expect(accepted.headers.location).to.equal(`/api/applies/${id}`);
    await eventually(async () => expect((await showApply(stack.api, id)).state).to.equal('committing'));
    const prepared = handlers().filter((pid) => !serving.includes(pid));
    await eventually(() => expect(Date.now()).to.be.above(over));
    await eventually(() => expect(prepared.filter((pid) => !isRunning(pid))).to.not.be.empty);
    await held.release();
    await eventually(async () => expect((await showApply(stack.api, id)).finished_at).to.be.a('string'));
    const ended = await showApply(stack.api, id);
    expect(ended).to.include({ state: 'undone', error_code: 'handler_start_failed' });
    expect(ended.error).to.match(/its time is over/);
    expect(await ask(host, '/one')).to.equal('200 1');
    expect(await ask(host, '/gone')).to.equal('200 2');
    await eventually(async () => expect(await ask(host, '/new')).to.match(/^404/));
    expect((await planOf(stack.api, before, '&prune=true')).changes).to.deep.equal([]);
    expectFailure(await stack.api.post(`/api/applies/${id}/rollback?dry_run=true`), 'apply_not_committed');
  });

  it('applies twenty endpoints under load without a failed request', async () => {
    const host = 'load.example';
    const numbers = Array.from({ length: 20 }, (_, at) => at);
    const folder = (version: number) =>
      folderOf(
        'load',
        host,
        numbers.map((at) => ({ route: `/e${at}`, code: numbered(version) })),
      );
    expectData(await applyFiles(stack.api, folder(1)));
    const load = await startLoad({
      targets: [stack.gatewayUrl],
      request: (client, number) => ({
        ...{ path: `/e${(client + number) % 20}`, method: 'POST', headers: { host }, text: /^[12] $/ },
      }),
    });
    const applied = expectData<ApplyShown>(await applyFiles(stack.api, folder(2)));
    expect(applied.outcome).to.deep.include({ updated: 20, deployed: 20 });
    expect(await load.stop()).to.deep.equal([]);
    for (const at of numbers) expect(await ask(host, `/e${at}`)).to.equal('200 2');
  });

  it('lists applies, and streams the progress of one to its end', async () => {
    const host = 'followed.example';
    const files = folderOf('followed', host, [{ route: '/a', code: numbered(1) }]);
    const { id, actor } = expectData<ApplyShown>(await applyFiles(stack.api, files));
    expect(actor).to.include({ kind: 'anonymous' });
    const page = await stack.api.get('/api/applies?limit=1&search=followed');
    expect(expectData<ApplyShown[]>(page).map((one) => one.id)).to.deep.equal([id]);
    const { text } = await call(`${stack.apiUrl}/api/applies/${id}/events`);
    expect(text).to.match(/event: progress.*event: done\nid: \d+\ndata: \{"id":/s);
  });

  it('finishes an apply with a warning that names an active service which cannot be reached', async () => {
    const host = 'away.example';
    const config = { host: '127.0.0.1', port: await freePort() };
    const service = { name: 'away cache', service_type: 'redis', config };
    const files = folderOf('away', host, [], { services: [service] });
    const response = await applyFiles(stack.api, files);
    const applied = expectData<ApplyShown>(response);
    expect(applied.state).to.equal('succeeded');
    const warning = /^The service "away cache" is active, but cannot be reached/;
    expect(applied.outcome?.warnings).to.have.length(1);
    expect(applied.outcome?.warnings[0]).to.match(warning);
    expect((response.body as { warnings?: string[] }).warnings?.[0]).to.match(warning);
    expect((await showApply(stack.api, applied.id)).outcome?.warnings[0]).to.match(warning);
    const without = folderOf('away', host, [], { services: [{ ...service, active: false }] });
    expect(expectData<ApplyShown>(await applyFiles(stack.api, without)).outcome?.warnings).to.deep.equal([]);
  });
});
