/** Applies with which routes change hands. */
import { expect } from 'chai';
import {
  type ApplyShown,
  applyFiles,
  compileAhead,
  type FolderEndpoint,
  folderOf,
  holdRow,
  type PlanShown,
  planOf,
  showApply,
} from '../../support/applies.js';
import { eventually } from '../../support/eventually.js';
import { expectData } from '../../support/expect.js';
import { DIES_AT_START, numbered, slowToStart, until } from '../../support/handler-sources.js';
import { call } from '../../support/http.js';
import { type Stack, startStack } from '../../support/processes.js';

describe('routes that change hands in an apply', function () {
  this.timeout(120_000);
  let stack: Stack;
  before(async () => {
    stack = await startStack();
  });
  after(() => stack?.close());

  const host = 'routes.example';
  const inCollection = (collection: string, number: number) => ({
    ...{ collection, path: '/x', route: undefined as never, name: `${collection}x` },
    code: numbered(number),
  });
  const folder = (a: string, b: string, more: { route: string; code: string }[] = []) =>
    folderOf('routes', host, [inCollection('a', 1), inCollection('b', 2), ...more], {
      collections: [
        { host, name: 'a', base_path: a },
        { host, name: 'b', base_path: b },
      ],
    });
  const ask = async (path: string) => {
    const { text } = await call(`${stack.gatewayUrl}${path}`, { method: 'POST', headers: { host } });
    return text.trim();
  };

  it('swaps the routes of two collections in an apply, and swaps them back in its rollback', async () => {
    expectData(await applyFiles(stack.api, folder('/a', '/b')));
    expect([await ask('/a/x'), await ask('/b/x')]).to.deep.equal(['1', '2']);
    const { id } = expectData<ApplyShown>(await applyFiles(stack.api, folder('/b', '/a')));
    expect([await ask('/a/x'), await ask('/b/x')]).to.deep.equal(['2', '1']);
    expect((await planOf(stack.api, folder('/b', '/a'))).changes).to.deep.equal([]);
    const path = `/api/applies/${id}/rollback`;
    const { plan_hash } = expectData<{ plan_hash: string }>(await stack.api.post(`${path}?dry_run=true`));
    expectData(await stack.api.post(`${path}?plan_hash=${plan_hash}`));
    expect([await ask('/a/x'), await ask('/b/x')]).to.deep.equal(['1', '2']);
  });

  it('moves a collection to the route of an endpoint that the same apply removes', async () => {
    const before = folder('/a', '/b', [{ route: '/z/x', code: numbered(3) }]);
    expectData(await applyFiles(stack.api, before));
    expect(await ask('/z/x')).to.equal('3');
    const list = expectData<{ id: string; name: string }[]>(
      await stack.api.get(`/api/endpoints?domain=${host}`),
    );
    const moved = list.find(({ name }) => name === 'ax')?.id;
    const after = folder('/z', '/b');
    expectData(await applyFiles(stack.api, after, '&prune=true'));
    expect(await ask('/z/x')).to.equal('1');
    expect((await planOf(stack.api, after, '&prune=true')).changes).to.deep.equal([]);
    expectData(await stack.api.get(`/api/endpoints/${moved}`));
  });

  it('keeps the secrets of handlers that swap their routes in an apply', async () => {
    const list = expectData<{ id: string; name: string }[]>(
      await stack.api.get(`/api/endpoints?domain=${host}`),
    );
    const id = list.find(({ name }) => name === 'ax')?.id;
    const secret = `/api/endpoints/${id}/secrets/NO_SUCH_VARIABLE`;
    expectData(await stack.api.put(secret, { value: 'of one of them' }));
    const files = folder('/b', '/z');
    const needy = DIES_AT_START.replace('Response::ok("ready")', 'Response::text(200, "ready")');
    expectData(await applyFiles(stack.api, { ...files, 'src/e0.rs': needy }));
    expect([await ask('/b/x'), await ask('/z/x')]).to.deep.equal(['ready', '2']);
  });

  const backOf = async (id: string) => {
    const path = `/api/applies/${id}/rollback`;
    const plan = expectData<PlanShown>(await stack.api.post(`${path}?dry_run=true`));
    return {
      plan,
      back: expectData<ApplyShown>(await stack.api.post(`${path}?plan_hash=${plan.plan_hash}`)),
    };
  };
  const idAt = async (of: string, route: string) => {
    const name = `POST ${of}${route}`;
    const path = `/api/resolve?kind=endpoint&name=${encodeURIComponent(name)}`;
    return expectData<{ id: string }>(await stack.api.get(path)).id;
  };
  const moving = (of: string, base_path: string, more: readonly FolderEndpoint[]) => {
    const inside = { collection: 'a', path: '/x', route: undefined as never, code: null, name: 'inside' };
    return folderOf(of.split('.')[0] ?? '', of, [inside, ...more], {
      collections: [{ host: of, name: 'a', base_path }],
    });
  };

  it('gives the route of an endpoint that moves to a new endpoint, and back to it in a rollback', async () => {
    const of = 'left.example';
    expectData(await applyFiles(stack.api, moving(of, '/a', [])));
    const inside = await idAt(of, '/a/x');
    const files = moving(of, '/z', [{ route: '/a/x', code: null }]);
    const { id } = expectData<ApplyShown>(await applyFiles(stack.api, files));
    expect(await idAt(of, '/z/x')).to.equal(inside);
    expect(await idAt(of, '/a/x')).not.to.equal(inside);
    await backOf(id);
    expect(await idAt(of, '/a/x')).to.equal(inside);
  });

  it('restores a removed endpoint and its route in a rollback that moves a collection away from it', async () => {
    const of = 'returned.example';
    expectData(await applyFiles(stack.api, moving(of, '/a', [{ route: '/z/x', code: null }])));
    const [inside, removed] = [await idAt(of, '/a/x'), await idAt(of, '/z/x')];
    const { id } = expectData<ApplyShown>(await applyFiles(stack.api, moving(of, '/z', []), '&prune=true'));
    expect(await idAt(of, '/z/x')).to.equal(inside);
    const { plan } = await backOf(id);
    expect(plan.warnings).to.deep.equal([]);
    expect([await idAt(of, '/a/x'), await idAt(of, '/z/x')]).to.deep.equal([inside, removed]);
  });

  it('restores routes that have changed hands when their apply is undone', async () => {
    const of = 'undone.example';
    const before = moving(of, '/a', [{ route: '/z/x', code: null }]);
    expectData(await applyFiles(stack.api, before));
    const [inside, removed] = [await idAt(of, '/a/x'), await idAt(of, '/z/x')];
    const held = await holdRow(stack.databaseUrl, inside);
    await compileAhead(stack.api, until(4));
    const over = Date.now() + 15_000;
    const variables = { UNTIL: String(over) };
    const after = moving(of, '/z', [{ route: '/n', code: until(4), variables }]);
    const accepted = await applyFiles(stack.api, after, '&prune=true', { prefer: 'respond-async' });
    const { id } = expectData<ApplyShown>(accepted, 202);
    await eventually(async () => expect((await showApply(stack.api, id)).state).to.equal('committing'));
    await eventually(() => expect(Date.now()).to.be.above(over + 1_000));
    await held.release();
    await eventually(
      async () => expect((await showApply(stack.api, id)).finished_at).to.be.a('string'),
      60_000,
    );
    const undone = await showApply(stack.api, id);
    expect(undone.state).to.equal('undone');
    expect(undone.outcome?.warnings).to.deep.equal([]);
    expect([await idAt(of, '/a/x'), await idAt(of, '/z/x')]).to.deep.equal([inside, removed]);
    expect((await planOf(stack.api, before)).changes).to.deep.equal([]);
  });

  it('fails an apply that would move an endpoint which others have made since the plan', async () => {
    const of = 'meanwhile.example';
    expectData(await applyFiles(stack.api, moving(of, '/a', [])));
    const after = moving(of, '/z', [{ route: '/slow', code: slowToStart(5, 5) }]);
    const accepted = await applyFiles(stack.api, after, '', { prefer: 'respond-async' });
    const { id } = expectData<ApplyShown>(accepted, 202);
    await eventually(
      async () => expect((await showApply(stack.api, id)).state).to.equal('preparing'),
      60_000,
    );
    const collection = `/api/resolve?kind=collection&name=${of}/a`;
    const collection_id = expectData<{ id: string }>(await stack.api.get(collection)).id;
    const made = { name: 'E', method: 'POST', domain: of, path: '/of-others', collection_id };
    expectData(await stack.api.post('/api/endpoints', made), 201);
    await eventually(
      async () => expect((await showApply(stack.api, id)).finished_at).to.be.a('string'),
      60_000,
    );
    const failed = await showApply(stack.api, id);
    expect(failed).to.include({ state: 'failed', error_code: 'plan_changed' });
    expect(failed.error).to.match(/"POST meanwhile\.example\/a\/of-others" was made since the plan/);
    await idAt(of, '/a/of-others');
  });
});
