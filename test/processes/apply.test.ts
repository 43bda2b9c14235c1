/** Applies over HTTP, with real processes: all or nothing. */
import { expect } from 'chai';
import { type ApplyShown, applyFiles, folderOf, planOf, showApply } from '../support/applies.js';
import { expectData, expectFailure } from '../support/expect.js';
import { DIES_AT_START, numbered } from '../support/handler-sources.js';
import { call } from '../support/http.js';
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

  it('make everything of a folder, and serve it', async () => {
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

  it('leave everything as it was when one handler does not compile, and say what the compiler says', async () => {
    const host = 'compiles.example';
    const before = folderOf('compiles', host, [{ route: '/a', code: numbered(1) }]);
    expectData(await applyFiles(stack.api, before));
    const after = folderOf('compiles', host, [
      { route: '/a', code: numbered(3) },
      { route: '/b', code: 'fn handle() { this is not Rust }' },
    ]);
    const response = await applyFiles(stack.api, after);
    expectFailure(response, 'compile_failed', /endpoint "POST compiles\.example\/b".*expected/s);
    const { details } = response.body as { details: { apply_id: string; endpoints: { diagnostics: object[] }[] } };
    expect(details.endpoints).to.have.length(1);
    expect(details.endpoints[0]?.diagnostics[0]).to.include({ level: 'error', line: 1 });
    expect(await showApply(stack.api, details.apply_id)).to.include({ state: 'failed', error_code: 'compile_failed' });
    expect(await ask(host, '/a')).to.equal('200 1');
    expect((await planOf(stack.api, before)).changes).to.deep.equal([]);
  });

  it('leave everything as it was when one handler does not start', async () => {
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

  it('do nothing but what was planned', async () => {
    const host = 'planned.example';
    const files = folderOf('planned', host, [{ route: '/a', code: null, name: 'a' }]);
    const { plan_hash } = await planOf(stack.api, files);
    await stack.api.post('/api/domains', { name: 'x', host });
    expectFailure(await stack.api.post(`/api/apply?plan_hash=${plan_hash}&adopt=true`, { files }), 'plan_changed');
    expectFailure(await stack.api.post('/api/apply?adopt=true', { files }), 'invalid_input', /plan_hash/);
    expectData(await applyFiles(stack.api, files, '&adopt=true'));
  });
});
