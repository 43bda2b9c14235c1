/** Applies and gateways: those that join meanwhile, and handlers that are prepared. */
import { expect } from 'chai';
import { type ApplyShown, applyFiles, folderOf, holdRow, showApply } from '../../support/applies.js';
import { eventually } from '../../support/eventually.js';
import { expectData } from '../../support/expect.js';
import { numbered, slowToStart } from '../../support/handler-sources.js';
import { call } from '../../support/http.js';
import { freePort } from '../../support/ports.js';
import { type Stack, startStack, type TestProcess } from '../../support/processes.js';

/** Of a gateway: handlers that wait for an apply. */
const MAX_KEPT = 64;

describe('gateways in an apply', function () {
  this.timeout(180_000);
  let stack: Stack;
  let joined: TestProcess[] = [];
  before(async () => {
    stack = await startStack({ env: { START_TIMEOUT_MS: '60000' } });
  });
  afterEach(async () => {
    for (const gateway of joined) await gateway.end();
    joined = [];
  });
  after(() => stack?.close());

  const ask = async (url: string, host: string, path: string) =>
    (await call(`${url}${path}`, { method: 'POST', headers: { host } })).text.trim();
  const join = async () => {
    const port = await freePort();
    const gateway = stack.launch('gateway', { GATEWAY_PORT: String(port) });
    joined.push(gateway);
    await gateway.ready;
    return { gateway, url: `http://127.0.0.1:${port}` };
  };
  const preparedBy = (gateway: TestProcess | undefined) =>
    (gateway?.logged.lines ?? []).filter(({ msg }) => msg === 'handler ready, prepared before').length;
  const start = async (files: Record<string, string>) => {
    const accepted = await applyFiles(stack.api, files, '', { prefer: 'respond-async' });
    return expectData<ApplyShown>(accepted, 202).id;
  };
  const reaches = (id: string, state: string) =>
    eventually(async () => expect((await showApply(stack.api, id)).state).to.equal(state), 90_000);

  it('prepares the handlers of an apply also on a gateway that joins during the preparation', async () => {
    const host = 'joins-early.example';
    const folder = (code: string) => folderOf('joins-early', host, [{ route: '/a', code }]);
    expectData(await applyFiles(stack.api, folder(numbered(1))));
    const before = preparedBy(stack.processes.get('gateway'));
    const id = await start(folder(slowToStart(2, 10)));
    await reaches(id, 'preparing');
    const { gateway, url } = await join();
    expect(await ask(url, host, '/a')).to.equal('1');
    await reaches(id, 'succeeded');
    for (const each of [stack.gatewayUrl, url]) expect(await ask(each, host, '/a')).to.equal('2');
    expect(preparedBy(stack.processes.get('gateway')) - before).to.equal(1);
    expect(preparedBy(gateway)).to.equal(1);
  });

  it('ends an apply only when a gateway that joined before the commit serves the new version', async () => {
    const host = 'joins-late.example';
    const folder = (code: string, more: object = {}) =>
      folderOf('joins-late', host, [{ route: '/a', code, ...more }]);
    expectData(await applyFiles(stack.api, folder(numbered(1))));
    const list = expectData<{ id: string }[]>(await stack.api.get(`/api/endpoints?domain=${host}`));
    const held = await holdRow(stack.databaseUrl, list[0]?.id ?? '');
    const id = await start(folder(numbered(3)));
    await reaches(id, 'committing');
    const { gateway, url } = await join();
    expect(await ask(url, host, '/a')).to.equal('1');
    await held.release();
    await reaches(id, 'succeeded');
    for (const each of [stack.gatewayUrl, url]) expect(await ask(each, host, '/a')).to.equal('3');
    expect(preparedBy(gateway)).to.equal(0);
  });

  it('keeps at most 64 prepared handlers of an apply in a gateway, and starts the others again', async () => {
    const host = 'many.example';
    const gateway = stack.processes.get('gateway');
    const before = preparedBy(gateway);
    const routes = Array.from({ length: MAX_KEPT + 2 }, (_, at) => `/r${at}`);
    const folder = folderOf(
      'many',
      host,
      routes.map((route) => ({ route, code: numbered(1) })),
    );
    const { progress } = expectData<ApplyShown>(await applyFiles(stack.api, folder));
    expect(progress['prepared']).to.deep.equal({ done: MAX_KEPT + 2, of: MAX_KEPT + 2 });
    expect(preparedBy(gateway) - before).to.equal(MAX_KEPT);
    for (const route of routes) expect(await ask(stack.gatewayUrl, host, route)).to.equal('1');
    expectData(await applyFiles(stack.api, folderOf('many', host, []), '&prune=true'));
  });
});
