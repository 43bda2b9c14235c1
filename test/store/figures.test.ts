/** How figures are kept: without a double, coarser with age, and no longer than that. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { MinuteFigures } from '../../src/gateway/telemetry/minute-figures.js';
import { type Database, openDatabase } from '../../src/store/database.js';
import {
  ALL_ENDPOINTS,
  condenseFigures,
  type Figures,
  readSeries,
  saveFigures,
} from '../../src/store/figures.js';
import { eventually } from '../support/eventually.js';
import { createTestLog } from '../support/log.js';
import { openTestStore, type TestStore } from '../support/store.js';
import { startProxy } from '../support/tcp-proxy.js';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const ENDPOINT = randomUUID();

const figures = (at: number, more: Partial<Figures> = {}): Figures => ({
  ...{ endpoint_id: ENDPOINT, at, version: 1, status_2xx: 2, status_3xx: 0, status_4xx: 1, status_5xx: 0 },
  ...{ status_other: 0, restarts: 1, cpu_seconds: 0.5, in_flight: 3, memory_bytes: 1_000 },
  ...{ buckets: [100, 120], counts: [2, 1] },
  ...more,
});

describe('figures in the database', () => {
  let opened: TestStore;
  let store: Database;
  const node = randomUUID();
  beforeEach(async () => {
    opened = await openTestStore();
    ({ store } = opened);
  });
  afterEach(() => opened.close());

  const read = (step: number, since = 0, version?: number) =>
    readSeries(store, {
      ...{ endpointId: ENDPOINT, version, step },
      ...{ since: new Date(since), until: new Date(Date.now() + DAY_MS) },
    });
  const steps = async () => (await store.knex('figures').orderBy('at').pluck('step')) as number[];
  /** The beginning of an hour so long ago. */
  const hourBefore = (age: number) => Math.floor((Date.now() - age) / HOUR_MS) * HOUR_MS;

  it('reads the figures of a minute that were written last', async () => {
    const at = hourBefore(0);
    await saveFigures(store, node, [figures(at), figures(at, { version: 2 })]);
    await saveFigures(store, node, [figures(at, { status_2xx: 10, counts: [10, 1] })]);
    const [point, ...others] = await read(60);
    expect(others).to.deep.equal([]);
    expect(point).to.deep.equal({
      ...{ at: at / 1000, status_2xx: 12, status_3xx: 0, status_4xx: 2, status_5xx: 0, status_other: 0 },
      ...{ restarts: 2, cpu_seconds: 1, in_flight: 3, memory_bytes: 2_000 },
      ...{ buckets: [100, 120], counts: [12, 2] },
    });
    expect((await read(60, 0, 2))[0]?.status_2xx).to.equal(2);
  });

  it('adds the figures of several gateways', async () => {
    const at = hourBefore(0);
    await saveFigures(store, node, [figures(at), figures(at + MINUTE_MS)]);
    await saveFigures(store, randomUUID(), [
      figures(at, { in_flight: 7, buckets: [120, 130], counts: [1, 4] }),
    ]);
    const [point] = await read(3_600);
    expect(point).to.deep.include({ status_2xx: 6, in_flight: 7, memory_bytes: 2_000 });
    expect(point).to.deep.include({ buckets: [100, 120, 130], counts: [4, 3, 4] });
  });

  it('keeps figures by minutes for a day, by ten minutes for a week, and by hours for 30 days', async () => {
    const ages = [2 * HOUR_MS, 3 * DAY_MS, 10 * DAY_MS, 40 * DAY_MS];
    for (const age of ages) {
      const at = hourBefore(age);
      const minutes = [0, 1, 2, 15].map((minute) => figures(at + minute * MINUTE_MS, { in_flight: minute }));
      await saveFigures(store, node, minutes);
    }
    const before = await read(3_600);
    for (let runs = 0; runs < 2; runs++) await condenseFigures(store);
    expect(await steps()).to.deep.equal([3_600, 600, 600, 60, 60, 60, 60]);
    const after = await read(3_600);
    expect(after).to.deep.equal(before.slice(1));
    expect(after[0]).to.deep.include({ status_2xx: 8, in_flight: 15, memory_bytes: 1_000, counts: [8, 4] });
  });

  it('adds figures that come late to those that are condensed already', async () => {
    const at = hourBefore(10 * DAY_MS);
    await saveFigures(store, node, [figures(at)]);
    await condenseFigures(store);
    await saveFigures(store, node, [figures(at + MINUTE_MS)]);
    await condenseFigures(store);
    expect(await steps()).to.deep.equal([3_600]);
    expect((await read(3_600))[0]).to.deep.include({ status_2xx: 4, buckets: [100, 120], counts: [4, 2] });
  });

  it('saves figures after PostgreSQL was away', async () => {
    const proxy = await startProxy(opened.databaseUrl);
    const away = openDatabase(proxy.url, () => undefined);
    const { log, lines } = createTestLog();
    const minutes = new MinuteFigures(away, 1, log);
    try {
      await proxy.down();
      minutes.start(node);
      const version = { version: 1, statuses: [0, 0, 5, 0, 0, 1], buckets: [100], counts: [6] };
      minutes.finished(hourBefore(0) / 1000, [{ id: ENDPOINT, inFlight: 2, versions: [version, version] }]);
      minutes.restarted(ENDPOINT, 1);
      await eventually(() => expect(lines.map(({ level }) => level)).to.include(40), 20_000);
      await proxy.up();
      await eventually(async () => expect(await read(3_600)).not.to.have.length(0), 20_000);
      expect((await read(3_600))[0]).to.deep.include({
        status_2xx: 10,
        status_5xx: 2,
        counts: [12],
        restarts: 1,
      });
      const all = { since: new Date(0), until: new Date(Date.now() + DAY_MS), step: 3_600 };
      expect((await readSeries(store, all))[0]).to.deep.include({ status_2xx: 10, counts: [12] });
      expect(await store.knex('figures').where({ endpoint_id: ALL_ENDPOINTS })).not.to.have.length(0);
    } finally {
      await minutes.stop();
      await away.close();
      await proxy.down();
    }
  }).timeout(60_000);
});
