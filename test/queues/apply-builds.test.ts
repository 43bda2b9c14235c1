/** Whose turn the builds of an apply take, before its domains are there. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { compileAll } from '../../jobs/apply/compile.js';
import type { ApplyContext, ApplyTry } from '../../jobs/apply/context.js';
import { ONE_FILE } from '../../src/model/source-files.js';
import { createDomain } from '../../src/store/domains.js';
import { eventually } from '../support/eventually.js';
import { openTestStoreWithQueues } from '../support/store.js';

describe('the builds of an apply', () => {
  let opened: Awaited<ReturnType<typeof openTestStoreWithQueues>>;
  before(async () => {
    opened = await openTestStoreWithQueues();
  });
  after(() => opened?.close());

  it('builds of an apply belong to the domains that exist after it', async () => {
    const { store, queues, logged } = opened;
    for (const host of ['stays.example', 'goes.example'])
      await createDomain(store, { name: host, host, description: null, enabled: true });
    const domain = (host: string) => ({ kind: 'domain', host });
    const hosts = ['new.example', 'stays.example', 'goes.example', 'none.example'];
    const changes = [
      { id: randomUUID(), before: null, after: domain('new.example') },
      { id: randomUUID(), before: domain('goes.example'), after: null },
      ...hosts.map((host) => ({
        ...{ id: randomUUID(), before: null },
        after: {
          kind: 'endpoint',
          name: host,
          host,
          method: 'GET',
          route: '/',
          ...{ code: `// ${host}`, ...ONE_FILE },
          running: true,
        },
      })),
    ];
    const end = new AbortController();
    const context = {
      lifecycle: {
        ...{ store, config: { CARGO_SOURCES: [] } },
        // No build ends.
        changes: {
          waitFor: (...[, , , , signal]: [unknown, unknown, unknown, unknown, AbortSignal]) =>
            new Promise((_, reject) => {
              if (signal.aborted) reject(signal.reason);
              signal.addEventListener('abort', () => reject(signal.reason));
            }),
        },
      },
      ...{ queues, toolchain: 't', log: logged.log },
    } as unknown as ApplyContext;
    const current = {
      apply: { request_id: 'r', actor: null, changes },
      ...{ signal: end.signal, progress: async () => undefined },
    } as unknown as ApplyTry;
    const ended = compileAll(context, current).catch(() => undefined);
    try {
      await eventually(async () => {
        const rows = await store.knex('builds').select<{ code: string; owner: string }[]>('code', 'owner');
        expect(Object.fromEntries(rows.map(({ code, owner }) => [code.slice(3), owner]))).to.deep.equal({
          ...{ 'new.example': 'new.example', 'stays.example': 'stays.example' },
          ...{ 'goes.example': '*', 'none.example': '*' },
        });
      });
    } finally {
      end.abort();
      await ended;
    }
  });
});
