/** The import of a bundle while PostgreSQL goes away and comes back. */
import type { Static } from '@sinclair/typebox';
import { expect } from 'chai';
import type { ImportView } from '../../../src/api/imports/imports.schema.js';
import { eventually } from '../../support/eventually.js';
import { expectData, expectFailure } from '../../support/expect.js';
import { multipart } from '../../support/form.js';
import { slowToCompile } from '../../support/handler-sources.js';
import { call } from '../../support/http.js';
import { handlerCompilersOf } from '../../support/process-state.js';
import { must, type Stack } from '../../support/processes.js';
import { type ProxiedStack, startProxiedStack } from '../../support/proxied-stack.js';
import type { TcpProxy } from '../../support/tcp-proxy.js';
import { zipOf } from '../../support/zip.js';

type Import = Static<typeof ImportView>;

describe('importing a bundle during a short outage of PostgreSQL', () => {
  let proxied: ProxiedStack | undefined;
  let stack: Stack;
  let database: TcpProxy;
  before(async () => {
    proxied = await startProxiedStack({ env: { WORKER_CONCURRENCY: '2' } });
    ({ stack, database } = proxied);
  });
  after(() => proxied?.close());

  const worker = () => {
    const process = stack.processes.get('worker');
    if (!process) throw new Error('no worker');
    return process;
  };
  const compilers = () => handlerCompilersOf(worker().pid).length;
  const failedJobs = () => worker().logged.lines.filter(({ msg }) => msg === 'job failed').length;
  const view = async (id: string) => (await must(stack.api.get(`/api/imports/${id}`))) as Import;

  it('an import finishes, although two builds could not record their outcome while PostgreSQL was away', async () => {
    // What cannot be said then is logged, job by job.
    worker().logged.expectErrors(/job failed/);
    const names = ['one', 'two', 'three'];
    const routes = names.map((name) => `  - { method: GET, path: /away/${name}, handler: ${name} }`);
    const zip = zipOf({
      'bundle.yaml': `bundle: { name: Away }\nroutes:\n${routes.join('\n')}\n`,
      ...Object.fromEntries(
        names.map((name, at) => [`handlers/${name}.rs`, slowToCompile(2_000_000, 700 + at)]),
      ),
    });
    const form = multipart([{ name: 'bundle', filename: 'a.zip', content: zip }]);
    const { import_id: id } = expectData<{ import_id: string }>(
      await stack.api.post('/api/import/bundle?domain=*&compile=1&start=1', form.body, {
        headers: { ...form.headers, prefer: 'respond-async' },
      }),
      202,
    );
    await eventually(() => expect(compilers()).to.equal(2), 30_000);
    await database.down();
    await eventually(async () =>
      expectFailure(await stack.api.get('/api/endpoints'), 'database_unavailable'),
    );
    // Both builds end meanwhile. Shorter than it takes a worker to count as dead.
    await eventually(() => expect(failedJobs()).to.equal(2), 30_000);
    await database.up();
    const ended = await eventually(async () => {
      const current = await view(id);
      expect(current.finished_at, JSON.stringify(current.counts)).not.to.equal(null);
      return current;
    }, 120_000);
    expect(ended, JSON.stringify(ended.errors)).to.include({ state: 'succeeded' });
    expect(ended.counts).to.include({ started: 3 });
    expect(ended.handlers.some(({ attempt }) => attempt > 1)).to.equal(true);
    expect((await call(`${stack.gatewayUrl}/away/two`)).text).to.equal('2000701');
  }).timeout(240_000);
});
