/** Handlers of several files, compiled and served by the API, a deploy and an apply, and what is said of mistakes. */
import { expect } from 'chai';
import type { Diagnostic } from '../../src/model/diagnostic.js';
import { openDatabase } from '../../src/store/database.js';
import { applyFiles, planOf } from '../support/applies.js';
import { expectData, expectFailure } from '../support/expect.js';
import { numbered } from '../support/handler-sources.js';
import { call } from '../support/http.js';
import { must, type Stack, startStack } from '../support/processes.js';
import { answerOf, BESIDE, ENTRY, helloOf } from '../support/source-folders.js';

/** A mistake in a shared file. */
const BROKEN = { ...BESIDE, 'src/common/words.rs': "\npub fn name() -> &'static str { 1 }\n" };

describe('handlers of several files', function () {
  this.timeout(120_000);
  let stack: Stack;
  before(async () => {
    stack = await startStack();
  });
  after(() => stack?.close());

  const ask = async (path: string, host = '*') => {
    const { text } = await call(`${stack.gatewayUrl}${path}`, host === '*' ? {} : { headers: { host } });
    return text.trim();
  };

  it('compiles and serves a handler of several files, and shows a mistake where it is', async () => {
    const code = helloOf('api');
    const id = await stack.deploy({ path: '/tree', code, entry: ENTRY, files: BESIDE });
    expect(await ask('/tree')).to.equal(answerOf('api'));
    expectData(await stack.api.put(`/api/endpoints/${id}`, { files: BROKEN }));
    const response = await stack.api.post(`/api/endpoints/${id}/compile`);
    expectFailure(response, 'compile_failed', /--> src\/common\/words\.rs:2:/);
    const { diagnostics } = response.body as { diagnostics: Diagnostic[] };
    expect(diagnostics[0]).to.include({
      level: 'error',
      code: 'E0308',
      file: 'src/common/words.rs',
      line: 2,
    });
    expect(diagnostics[0]?.labels.map(({ file }) => file)).to.include('src/common/words.rs');
    expect(await ask('/tree')).to.equal(answerOf('api'));
  });

  it('deploys a file of a handler, and leaves everything as it was when that does not compile', async () => {
    const code = helloOf('deploy');
    const id = await stack.deploy({ path: '/deployed', code, entry: ENTRY, files: BESIDE });
    const deploy = `/api/endpoints/${id}/deploy`;
    expectFailure(await stack.api.post(deploy, { files: BROKEN }), 'compile_failed', /words\.rs:2:/);
    const words = 'pub fn name() -> &\'static str { "eve" }\n';
    const files = { ...BESIDE, 'src/common/words.rs': words, empty: '', image: { base64: '/w==' } };
    expectData(await stack.api.post(deploy, { files }));
    expect(await ask('/deployed')).to.equal(answerOf('deploy').replace('ada', 'eve'));
    const shown = (await must(stack.api.get(`/api/endpoints/${id}`))) as object;
    expect(shown).to.deep.include({ code, entry: ENTRY, files, needs_compile: false });
    const version = (await must(stack.api.get(`/api/endpoints/${id}/versions/2`))) as object;
    expect(version).to.deep.include({ code, entry: ENTRY, files });
    const diff = (await must(stack.api.get(`/api/endpoints/${id}/versions/1/diff?to=2`))) as { diff: string };
    expect(diff.diff).to.include('+++ src/common/words.rs\tversion 2').and.to.include(`+${words}`);
    expect(diff.diff).not.to.include('hello.rs');
    for (const added of ['empty', 'image'])
      expect(diff.diff).to.include(`The file ${added} is only in version 2.\n`);
    expectData(await stack.api.post(`/api/endpoints/${id}/rollback`));
    expect(await ask('/deployed')).to.equal(answerOf('deploy'));
  });

  it('compiles code of the edition that it is of, and says which compilers there are', async () => {
    const source = (value: string) => `use rust_edge_gateway_sdk::prelude::*;
fn later() -> impl Future<Output = ()> { async {} }
fn handle(_req: Request) -> Response {
    drop(later());
    Response::text(200, "${value}")
}
handler_loop!(handle);
`;
    const id = await stack.deploy({ path: '/edition', code: source('2024'), edition: '2024' });
    expect(await ask('/edition')).to.equal('2024');
    // The prelude of the edition before has no futures.
    const deploy = `/api/endpoints/${id}/deploy`;
    const older = await stack.api.post(deploy, { edition: '2021' });
    expectFailure(older, 'compile_failed', /cannot find trait `Future`/);
    expect(await must(stack.api.get(`/api/endpoints/${id}`))).to.include({ edition: '2024' });
    expect(await must(stack.api.get(`/api/endpoints/${id}/versions/1`))).to.include({ edition: '2024' });
    const { rustc } = (await must(stack.api.get('/api/health'))) as {
      rustc: { version: string; host: string }[];
    };
    expect(rustc).to.have.length(1);
    expect(rustc[0]?.version).to.match(/^rustc \d+\.\d+/);
    expect(rustc[0]?.host).to.match(/-linux-/);
  });

  it('applies a folder whose handlers share files, and rolls back a change of one', async () => {
    const host = 'shared.example';
    const handlers = ['one', 'two'].map((name) => [name, `src/${name}.rs`] as const);
    const edge = {
      stack: 'shared',
      domains: [{ host }],
      endpoints: handlers.map(([name, handler]) => ({ host, method: 'GET', route: `/${name}`, handler })),
    };
    const codes = Object.fromEntries(handlers.map(([name, handler]) => [handler, helloOf(name)]));
    const folder = { 'edge.yaml': JSON.stringify(edge), ...codes, ...BESIDE };
    expectData(await applyFiles(stack.api, folder));
    for (const [name] of handlers) expect(await ask(`/${name}`, host)).to.equal(answerOf(name));
    expect((await planOf(stack.api, folder)).changes).to.deep.equal([]);

    const broken = await applyFiles(stack.api, { ...folder, ...BROKEN });
    expectFailure(broken, 'compile_failed', /words\.rs:2:/);
    const changed = { ...folder, 'page.html': '<b>' };
    const { id } = expectData<{ id: string }>(await applyFiles(stack.api, changed));
    expect(await ask('/two', host)).to.equal(answerOf('two').replace('<p>', '<b>'));
    const rollback = `/api/applies/${id}/rollback`;
    const { plan_hash } = expectData<{ plan_hash: string }>(await stack.api.post(`${rollback}?dry_run=true`));
    expectData(await stack.api.post(`${rollback}?plan_hash=${plan_hash}`));
    expect(await ask('/two', host)).to.equal(answerOf('two'));
    expect((await planOf(stack.api, folder)).changes).to.deep.equal([]);
  });

  it('rolls back an apply of the version before, which had no files of sources', async () => {
    const host = 'earlier.example';
    const endpoint = { host, method: 'GET', route: '/one', handler: 'one.rs' };
    const edge = { stack: 'earlier', domains: [{ host }], endpoints: [endpoint] };
    const code = numbered(41);
    const folder = { 'edge.yaml': JSON.stringify(edge), 'one.rs': code };
    expectData(await applyFiles(stack.api, folder));
    const without = { ...folder, 'edge.yaml': JSON.stringify({ ...edge, endpoints: [] }) };
    const pruned = await applyFiles(stack.api, without, '&prune=true');
    const { id } = expectData<{ id: string }>(pruned);
    const store = openDatabase(stack.databaseUrl, () => undefined);
    try {
      // As that version has written it.
      await store.knex.raw(
        `UPDATE applies SET changes = (
           SELECT jsonb_agg(change #- '{before,files}' #- '{before,entry}' #- '{before,edition}')
             FROM jsonb_array_elements(changes) AS change) WHERE id = ?`,
        [id],
      );
    } finally {
      await store.close();
    }
    const rollback = `/api/applies/${id}/rollback`;
    const { plan_hash } = expectData<{ plan_hash: string }>(await stack.api.post(`${rollback}?dry_run=true`));
    expectData(await stack.api.post(`${rollback}?plan_hash=${plan_hash}`));
    const { text } = await call(`${stack.gatewayUrl}/one`, { method: 'GET', headers: { host } });
    expect(text.trim()).to.equal('41');
  });
});
