/** Recovery of handlers whose job or worker is lost, one check at a time, without a running worker. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { ActiveJobs } from '../../jobs/active-jobs.js';
import { recoverImports } from '../../jobs/recover-imports.js';
import { ONE_FILE } from '../../src/model/source-files.js';
import { handlerJobId } from '../../src/queues/jobs.js';
import type { Queues } from '../../src/queues/queues.js';
import type { Database } from '../../src/store/database.js';
import {
  claimHandler,
  finishHandler,
  type HandlerAttempt,
  handlersOf,
} from '../../src/store/import-handlers.js';
import { findImport, type Import } from '../../src/store/imports.js';
import { removeNode } from '../../src/store/nodes.js';
import { EMPTY_API, storeImport } from '../support/imports.js';
import type { TestLog } from '../support/log.js';
import { addNode } from '../support/nodes.js';
import { openTestStoreWithQueues } from '../support/store.js';

describe('lost imports', () => {
  let close: () => Promise<void>;
  let store: Database;
  let queues: Queues;
  let logged: TestLog;
  /** Another one, which is alive; this one, which looks, does not. */
  const worker = randomUUID();
  const own = { workerId: randomUUID(), activeJobs: new ActiveJobs() };

  before(async () => {
    ({ store, queues, logged, close } = await openTestStoreWithQueues());
    await addNode(store, 'worker', { id: worker });
  });
  after(() => close());

  /** A stored bundle with so many handlers, all queued, and without a job. */
  async function stored(handlers: number): Promise<HandlerAttempt[]> {
    const title = `Bundle ${randomUUID()}`;
    const id = randomUUID();
    const { endpoints } = await storeImport(
      store,
      { domain: '*', domainId: null, collectionId: null, createCollection: false },
      {
        ...EMPTY_API,
        kind: 'bundle',
        title,
        basePath: `/${id}`,
        endpoints: Array.from({ length: handlers }, (_, number) => ({
          name: `h${number}`,
          method: 'GET' as const,
          path: `/h${number}`,
          description: null,
          generatedCode: '',
          handler: { file: `h${number}.rs`, code: `// ${number}`, ...ONE_FILE },
        })),
      },
      { id, compile: true },
    );
    return endpoints.map((endpoint) => ({ importId: id, endpointId: endpoint.id, attempt: 1 }));
  }

  const look = () => recoverImports(store, queues, logged.log, own);
  const age = (importId: string, seconds = 10) =>
    store
      .knex('import_handlers')
      .where({ import_id: importId })
      .update({ queued_at: store.knex.raw("clock_timestamp() - ? * interval '1 second'", [seconds]) });
  const attempts = async (importId: string) =>
    (await handlersOf(store, importId)).map(({ attempt }) => attempt);
  const importOf = async (id: string) => (await findImport(store, id)) as Import;
  const idOf = ([handler]: readonly HandlerAttempt[]) => handler?.importId ?? '';
  const next = (handler: HandlerAttempt) => ({ ...handler, attempt: handler.attempt + 1 });

  it('queues handlers of an import again that have waited and that the queue does not know', async () => {
    const handlers = await stored(2);
    const id = idOf(handlers);
    await look();
    expect(await attempts(id)).to.deep.equal([1, 1]);
    await age(id);
    await look();
    expect(await attempts(id)).to.deep.equal([2, 2]);
    for (const handler of handlers)
      expect(await queues.hasJob('handler', handlerJobId(next(handler)))).to.equal(true);
    // Known now, however long they wait.
    await age(id);
    await look();
    expect(await attempts(id)).to.deep.equal([2, 2]);
  });

  it('leaves handlers of an import alone while the queue has their jobs', async () => {
    const handlers = await stored(2);
    const id = idOf(handlers);
    await queues.enqueueImport({ importId: id, requestId: 'request' }, handlers);
    await age(id);
    await look();
    expect(await attempts(id)).to.deep.equal([1, 1]);
  });

  it('queues a handler of an import again at once when its worker is gone', async () => {
    const handlers = await stored(2);
    const [first, second] = handlers;
    if (!first || !second) throw new Error('no handlers');
    const gone = await addNode(store, 'worker');
    await queues.enqueueImport({ importId: first.importId, requestId: 'request' }, handlers);
    const claimed = { start: false, request_id: 'request', principal: null };
    expect(await claimHandler(store, first, gone)).to.deep.equal(claimed);
    expect(await claimHandler(store, first, worker)).to.equal(undefined);
    expect(await claimHandler(store, second, worker)).not.to.equal(undefined);
    await look();
    expect(await attempts(first.importId)).to.deep.equal([1, 1]);
    await removeNode(store, gone);
    await look();
    expect(await attempts(first.importId)).to.deep.equal([2, 1]);
    // What the lost worker still says does not count.
    expect(await finishHandler(store, first, { state: 'compiled' })).to.equal(false);
    expect((await importOf(first.importId)).state).to.equal('running');
  });

  it('queues handlers of an import again that this worker has claimed and is not executing', async () => {
    const handlers = await stored(2);
    const [first, second] = handlers;
    if (!first || !second) throw new Error('no handlers');
    await queues.enqueueImport({ importId: first.importId, requestId: 'request' }, handlers);
    await own.activeJobs.run(handlerJobId(first), async () => {
      for (const handler of handlers) await claimHandler(store, handler, own.workerId);
      await look();
      expect(await attempts(first.importId)).to.deep.equal([1, 2]);
      expect(await queues.hasJob('handler', handlerJobId(next(second)))).to.equal(true);
    });
    await look();
    expect(await attempts(first.importId)).to.deep.equal([2, 2]);
    for (const handler of handlers) expect(await claimHandler(store, handler, worker)).to.equal(undefined);
  });

  it('fails a handler of an import after five attempts, and ends the import', async () => {
    logged.expectErrors(/handler failed after too many attempts/);
    const handlers = await stored(1);
    const id = idOf(handlers);
    for (let time = 0; time < 5; time++) {
      await age(id);
      // As if the queue had forgotten everything.
      await queues.all[2]?.obliterate({ force: true });
      await look();
    }
    const [row] = await handlersOf(store, id);
    expect(row).to.include({ state: 'failed', stage: 'compile', attempt: 5 });
    expect(row?.message).to.match(/was lost 5 times/);
    expect(await importOf(id)).to.include({ state: 'failed' });
  });

  it('ends an import when all its handlers have ended', async () => {
    const handlers = await stored(2);
    const id = idOf(handlers);
    for (const handler of handlers) {
      await claimHandler(store, handler, worker);
      await finishHandler(store, handler, { state: 'compiled' });
    }
    expect((await importOf(id)).finished_at).to.equal(null);
    await look();
    const ended = await importOf(id);
    expect(ended.state).to.equal('succeeded');
    expect(Object.keys(ended.statuses ?? {})).to.have.members(handlers.map(({ endpointId }) => endpointId));
    expect(ended.version).to.equal(6);
  });

  it('deletes an import a month after its end', async () => {
    const handlers = await stored(0);
    expect(handlers).to.deep.equal([]);
    const finished = store.knex('imports').whereNotNull('finished_at');
    const [{ id } = { id: '' }] = await finished.clone().orderBy('created_at', 'desc').select('id');
    const kept = Number((await store.knex('imports').count())[0]?.['count']);
    await store
      .knex('imports')
      .where({ id })
      .update({ finished_at: store.knex.raw("now() - interval '29 days'") });
    await look();
    expect(await findImport(store, id)).not.to.equal(undefined);
    await store
      .knex('imports')
      .where({ id })
      .update({ finished_at: store.knex.raw("now() - interval '31 days'") });
    await look();
    expect(await findImport(store, id)).to.equal(undefined);
    expect(Number((await store.knex('imports').count())[0]?.['count'])).to.equal(kept - 1);
  });
});
