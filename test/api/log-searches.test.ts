/** Searches of the log take turns, and end: whoever reads what is new does not wait for them. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { LogReads, SEARCH_TURNS } from '../../src/api/logs/log-reads.js';
import { AppError } from '../../src/errors.js';
import { startApi, type TestApi } from '../support/api.js';

describe('searches of the log', () => {
  let api: TestApi;
  before(async () => {
    api = await startApi();
  });
  after(() => api.close());

  /** Takes all places until it is called. */
  async function takeAllPlaces(): Promise<() => void> {
    const releases: (() => void)[] = [];
    const place = (owner: string) =>
      new Promise<void>((resolve, reject) => {
        const work = () =>
          new Promise<void>((release) => {
            releases.push(release);
            resolve();
          });
        SEARCH_TURNS.run(owner, work).catch(reject);
      });
    await Promise.all(Array.from({ length: 6 }, (_, at) => place(`other ${at}`)));
    return () => {
      for (const release of releases) release();
    };
  }

  it('wait for their turn, while the newest entries and those of a request are shown at once', async () => {
    const release = await takeAllPlaces();
    const answered: string[] = [];
    const ask = async (query: string) => {
      const { status } = await api.get(`/api/logs${query}`);
      answered.push(`${query} ${status}`);
    };
    const searches = ['?search=x', '?status=5xx', '?kind=output&since=2026-01-01T00:00:00Z'].map(ask);
    const others = ['', '?request_id=r', `?endpoint_id=${randomUUID()}`, '?since=2026-01-01T00:00:00Z'];
    for (const query of others) await ask(query);
    expect(answered).to.deep.equal(others.map((query) => `${query} 200`));
    release();
    await Promise.all(searches);
    expect(answered).to.have.length(7);
    expect(answered.every((one) => one.endsWith(' 200'))).to.equal(true);
  });

  it('a search that takes too long ends, and says how to ask for less', async () => {
    const log = new LogReads(api.store, 'ada', 100);
    const locked = await api.store.knex.transaction();
    try {
      await locked.raw('LOCK TABLE logs IN ACCESS EXCLUSIVE MODE');
      const thrown = await log.list({ search: 'x' }, 10, undefined).catch((error: unknown) => error);
      expect(thrown).to.be.instanceOf(AppError).and.include({ code: 'busy' });
      expect((thrown as AppError).message).to.match(/took longer than 0\.1 s; narrow it/);
    } finally {
      await locked.rollback();
    }
    expect((await log.list({ search: 'x' }, 10, undefined)).rows).to.deep.equal([]);
  });
});
