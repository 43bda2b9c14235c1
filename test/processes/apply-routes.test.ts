/** Applies with which routes change hands. */
import { expect } from 'chai';
import { type ApplyShown, applyFiles, folderOf, planOf } from '../support/applies.js';
import { expectData } from '../support/expect.js';
import { DIES_AT_START, numbered } from '../support/handler-sources.js';
import { call } from '../support/http.js';
import { type Stack, startStack } from '../support/processes.js';

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

  it('are swapped by two collections, and swapped back', async () => {
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

  it('are those of an endpoint that is removed, which a collection moves to', async () => {
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

  it('are swapped by handlers that keep their own secrets', async () => {
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
});
