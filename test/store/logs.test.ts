/** How the log is kept: without a double, in partitions that are dropped whole, bounded while PostgreSQL is away. */
import { randomBytes, randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { dropLogs } from '../../jobs/drop-logs.js';
import { ENDPOINT_DEFAULTS } from '../../src/api/endpoints/endpoints.schema.js';
import { LogWriter } from '../../src/gateway/log/log-writer.js';
import type { LogEntry } from '../../src/model/log-entry.js';
import { type Database, openDatabase } from '../../src/store/database.js';
import { createDomain } from '../../src/store/domains.js';
import { createEndpoint, deleteEndpoint } from '../../src/store/endpoints.js';
import { dropOldLogs, ensureLogPartition, hourOf } from '../../src/store/log-partitions.js';
import { addLogWriter, databaseTime, writeLogs } from '../../src/store/log-writing.js';
import { listLogs, logPosition } from '../../src/store/logs.js';
import { eventually } from '../support/eventually.js';
import { createTestLog } from '../support/log.js';
import { openTestStore, type TestStore } from '../support/store.js';
import { startProxy } from '../support/tcp-proxy.js';

const HOUR_MS = 3_600_000;
const ENDPOINT = randomUUID();
const domainOf = () => 'example.com';

const entry = (message: string, at = Date.now()): LogEntry => ({
  ...{ at, kind: 'output', level: 'info', endpointId: ENDPOINT, version: 1, requestId: null },
  ...{ message, fields: { target: 'stdout' }, request: null },
});

describe('the log in the database', () => {
  let opened: TestStore;
  let store: Database;
  beforeEach(async () => {
    opened = await openTestStore();
    ({ store } = opened);
  });
  afterEach(() => opened.close());

  const messages = async (limit = 100_000) =>
    (await listLogs(store, {}, limit, undefined)).rows.map(({ message }) => message);
  const write = async (writer: number, at: number, firstNumber: number, texts: readonly string[]) => {
    await ensureLogPartition(store, hourOf(at));
    const entries = texts.map((text, place) => ({ ...entry(text, at), number: firstNumber + place }));
    await writeLogs(store, writer, entries);
  };

  it('stores entries of the log with any text', async () => {
    const writer = await addLogWriter(store, randomUUID());
    const texts = ['tab\tline\nreturn\rslash\\ \\N', 'nul \0 end', '\ud800 alone', '"quotes"', ''];
    await write(writer, Date.now(), 1, texts);
    const stored = ['tab\tline\nreturn\rslash\\ \\N', 'nul \ufffd end', '\ufffd alone', '"quotes"', ''];
    expect(await messages()).to.have.members(stored);
  });

  it('stores each entry of the log once, even when its writer tries again', async () => {
    const writer = await addLogWriter(store, randomUUID());
    const at = Date.now();
    for (let tries = 0; tries < 2; tries++) await write(writer, at, 1, ['one', 'two']);
    await write(writer, at, 3, ['three']);
    expect(await messages()).to.deep.equal(['three', 'two', 'one']);
    expect((await logPosition(store)).get(writer)).to.deep.equal({ number: 3, at });
  });

  it('drops entries of the log that are too old', async () => {
    const writer = await addLogWriter(store, randomUUID());
    const now = await databaseTime(store);
    await write(writer, now - 50 * HOUR_MS, 1, ['too old']);
    await write(writer, now - 20 * HOUR_MS, 2, ['old']);
    await write(writer, now, 3, ['new']);
    const { log, lines } = createTestLog();
    await dropLogs(store, { LOG_RETENTION_DAYS: 1, LOG_RETENTION_MB: 1_024 }, log);
    expect(await messages()).to.deep.equal(['new', 'old']);
    expect(lines.map(({ msg }) => msg)).to.deep.equal(['old entries of the log dropped']);
  });

  it('drops the oldest entries of a log that is too large, but none of the current hour', async () => {
    const writer = await addLogWriter(store, randomUUID());
    const now = await databaseTime(store);
    // Random, so that it is not compressed.
    const long = () => Array.from({ length: 60 }, () => randomUUID().repeat(400));
    for (const [place, hours] of [3, 2, 0].entries())
      await write(writer, now - hours * HOUR_MS, 1 + 60 * place, long());
    const { log } = createTestLog();
    const bytes = async () => {
      const { rows } = await store.knex.raw<{ rows: { bytes: number }[] }>(
        `SELECT sum(pg_total_relation_size(inhrelid))::float8 AS bytes FROM pg_inherits WHERE inhparent = 'logs'::regclass`,
      );
      return rows[0]?.bytes ?? 0;
    };
    const one = (await bytes()) / 3;
    const megabytes = (2.5 * one) / 1024 / 1024;
    await dropLogs(store, { LOG_RETENTION_DAYS: 7, LOG_RETENTION_MB: megabytes }, log);
    // It is filled to 95 %: 0.625 of the oldest 60 went.
    expect((await messages()).length).to.be.within(140, 145);
    await dropLogs(store, { LOG_RETENTION_DAYS: 7, LOG_RETENTION_MB: 0 }, log);
    expect(await messages()).to.have.length(60);
  });

  it('drops only entries of endpoints that have more than their share of a log that is too large', async () => {
    const writer = await addLogWriter(store, randomUUID());
    const now = await databaseTime(store);
    let number = 0;
    const add = async (endpointId: string, hours: number, texts: readonly string[]) => {
      const at = now - hours * HOUR_MS;
      await ensureLogPartition(store, hourOf(at));
      const entries = texts.map((text) => ({ ...entry(text, at), endpointId, number: ++number }));
      await writeLogs(store, writer, entries);
    };
    const [talker, quiet, other] = [randomUUID(), randomUUID(), randomUUID()];
    // Random, so that it is not compressed.
    const long = () => Array.from({ length: 2_000 }, () => randomUUID()).join('');
    const kept = async (endpointId: string) =>
      (await listLogs(store, { endpointId }, 100_000, undefined)).rows.map(({ message }) => message);
    // Two days in which others say little, and an hour of a talker.
    for (let hours = 48; hours > 2; hours--)
      for (const id of [quiet, other]) await add(id, hours, [`${id} ${hours} h ago`]);
    await add(talker, 3, Array.from({ length: 200 }, long));
    await add(talker, 2, ['the newest']);
    const { log, lines } = createTestLog();
    const settings = { LOG_RETENTION_DAYS: 7, LOG_RETENTION_MB: 10 };
    await dropLogs(store, settings, log);
    expect(await kept(quiet)).to.have.length(46);
    expect(await kept(other)).to.have.length(46);
    const left = await kept(talker);
    expect(left[0]).to.equal('the newest');
    expect(left.length).to.be.within(2, 150);
    expect(lines.map(({ endpoints }) => endpoints)).to.deep.equal([1]);
    // There is room now.
    await dropLogs(store, settings, log);
    expect(lines).to.have.length(1);
  });

  for (const [title, areDeleted] of [
    ['an endpoint keeps its entries while those of another domain have more than the share of theirs', false],
    ['entries of endpoints that were deleted share the room of the log with those of their domain', true],
  ] as const)
    it(title, async () => {
      const writer = await addLogWriter(store, randomUUID());
      const at = hourOf((await databaseTime(store)) - 3 * HOUR_MS);
      await ensureLogPartition(store, at);
      const endpointOf = async (domain: string, path: string) => {
        const endpoint = { name: path, path, method: 'GET', domain } as const;
        return (await createEndpoint(store, { ...ENDPOINT_DEFAULTS, ...endpoint })).id;
      };
      for (const host of ['talks.example', 'quiet.example'])
        await createDomain(store, { name: host, host, description: null, enabled: true });
      const talkers: string[] = [];
      for (const path of ['/1', '/2', '/3', '/4']) talkers.push(await endpointOf('talks.example', path));
      const quiet = await endpointOf('quiet.example', '/');
      if (areDeleted) for (const id of [...talkers, quiet]) await deleteEndpoint(store, id);
      let number = 0;
      // It has more than each of the others, and their domain has more than its own.
      for (const [endpointId, entries] of [
        ...talkers.map((id) => [id, 2_000] as const),
        [quiet, 2_500] as const,
      ]) {
        const texts = Array.from({ length: entries }, () => randomBytes(500).toString('hex'));
        const added = texts.map((text) => ({ ...entry(text, at), endpointId, number: ++number }));
        await writeLogs(store, writer, added);
      }
      await dropLogs(store, { LOG_RETENTION_DAYS: 7, LOG_RETENTION_MB: 9 }, createTestLog().log);
      const kept = async (endpointId: string) =>
        (await listLogs(store, { endpointId }, 100_000, undefined)).rows.length;
      expect(await kept(quiet)).to.equal(2_500);
      for (const id of talkers) expect(await kept(id)).to.be.within(500, 1_900);
    });

  it('counts short entries with what their indexes take when it looks for who has more than their share', async () => {
    const writer = await addLogWriter(store, randomUUID());
    const at = hourOf((await databaseTime(store)) - 3 * HOUR_MS);
    await ensureLogPartition(store, at);
    const [short, long] = [randomUUID(), randomUUID()];
    let number = 0;
    const add = async (endpointId: string, count: number, text: () => string) => {
      const added = Array.from({ length: count }, () => ({
        ...entry(text(), at),
        endpointId,
        number: ++number,
      }));
      await writeLogs(store, writer, added);
    };
    // Their columns take 2.2 MB, and 3.4 MB; on the disk it is 5.2 MB, and 4 MB.
    for (let round = 0; round < 20; round++) await add(short, 1_000, () => 'x');
    for (let round = 0; round < 3; round++) await add(long, 1_000, () => randomBytes(500).toString('hex'));
    await dropLogs(store, { LOG_RETENTION_DAYS: 7, LOG_RETENTION_MB: 8 }, createTestLog().log);
    const kept = async (endpointId: string) =>
      (await listLogs(store, { endpointId }, 100_000, undefined)).rows.length;
    expect(await kept(long)).to.equal(3_000);
    expect(await kept(short)).to.be.within(10_000, 18_000);
  });

  it('forgets the writers of a log when their entries are dropped', async () => {
    const writer = await addLogWriter(store, randomUUID());
    await write(writer, (await databaseTime(store)) - 50 * HOUR_MS, 1, ['too old']);
    const { log } = createTestLog();
    await dropLogs(store, { LOG_RETENTION_DAYS: 1, LOG_RETENTION_MB: 1_024 }, log);
    expect([...(await logPosition(store)).keys()]).to.deep.equal([]);
  });

  it('loses an entry of the log that PostgreSQL refuses, and no other', async () => {
    const { log, lines, expectErrors } = createTestLog();
    expectErrors(/an entry of the log cannot be stored/);
    const writer = new LogWriter(store, log, 2 ** 30, domainOf);
    writer.start(randomUUID());
    try {
      writer.add(entry('first'));
      writer.add({ ...entry('too large'), version: 2 ** 40 });
      writer.add(entry('last'));
      await eventually(async () => expect(await messages()).to.have.length(3));
      expect((await messages()).reverse()).to.deep.equal(['first', 'last', lossOf(1)]);
      expect(lines.map(({ msg }) => msg)).to.include('an entry of the log cannot be stored');
    } finally {
      await writer.stop();
    }
  });

  it('keeps room in the log for errors and other endpoints when one has filled half of the hour', async () => {
    const { log, lines } = createTestLog();
    const writer = new LogWriter(store, log, 4 * 1024 * 1024, domainOf);
    const of = (endpointId: string, message: string, level: LogEntry['level'] = 'info'): LogEntry => ({
      ...entry(message),
      ...{ endpointId, level },
    });
    const leftOut = async () =>
      (await listLogs(store, { endpointId: ENDPOINT }, 100_000, undefined)).rows.reduce(
        (sum, { fields }) => sum + Number(fields?.['left_out'] ?? 0),
        0,
      );
    writer.start(randomUUID());
    try {
      // Random, so that it is not compressed: more than twice of what an hour may have.
      const long = () => Array.from({ length: 27 }, () => randomUUID()).join('');
      for (let number = 0; number < 10_000; number++) writer.add(of(ENDPOINT, long()));
      await eventually(async () => expect(await leftOut()).to.be.above(1_000));
      writer.add(of(ENDPOINT, 'broken', 'error'));
      writer.add(of(ENDPOINT, 'one more'));
      writer.add(of(randomUUID(), 'of a quiet one'));
      await eventually(async () =>
        expect(await messages(3)).to.include.members(['broken', 'of a quiet one']),
      );
      expect(await messages()).not.to.include('one more');
      expect(lines.filter(({ msg }) => msg?.includes('the log of this hour is getting full'))).to.have.length(
        1,
      );
    } finally {
      await writer.stop();
    }
    const written = (await messages()).filter((message) => message.length > 900).length;
    expect(written + (await leftOut())).to.equal(10_001);
    const { rows } = await store.knex.raw<{ rows: { bytes: number }[] }>(
      `SELECT sum(pg_total_relation_size(inhrelid))::float8 AS bytes FROM pg_inherits WHERE inhparent = 'logs'::regclass`,
    );
    expect(rows[0]?.bytes).to.be.below(4 * 1024 * 1024);
  });

  it('writes the log of a gateway again after all its entries were dropped', async () => {
    const { log } = createTestLog();
    const writer = new LogWriter(store, log, 2 ** 30, domainOf);
    writer.start(randomUUID());
    try {
      writer.add(entry('first'));
      await eventually(async () => expect(await messages()).to.deep.equal(['first']));
      await store.knex.raw('DELETE FROM logs');
      await store.knex.raw('DELETE FROM log_writers');
      writer.add(entry('second'));
      await eventually(async () => expect(await messages()).to.deep.equal(['second']));
      expect([...(await logPosition(store)).values()].map(({ number }) => number)).to.deep.equal([2]);
    } finally {
      await writer.stop();
    }
  });

  it('does not forget a gateway that writes while it is looked for those that have ended', async () => {
    const writer = await addLogWriter(store, randomUUID());
    await ensureLogPartition(store, hourOf(Date.now()));
    const writing = await store.knex.transaction();
    const values = {
      at: new Date(),
      writer_id: writer,
      number: 1,
      kind: 'output',
      level: 30,
      message: 'kept',
    };
    await writing('logs').insert({ ...values, endpoint_id: ENDPOINT });
    await writing('log_writers').where({ id: writer }).update({ last_number: 1, last_at: new Date() });
    const forgetting = dropOldLogs(store, 7);
    await eventually(async () => {
      const { rows } = await store.knex.raw<{ rows: { count: number }[] }>(
        `SELECT count(*)::int AS count FROM pg_stat_activity
          WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE 'DELETE FROM log_writers%'`,
      );
      expect(rows[0]?.count).to.equal(1);
    });
    await writing.commit();
    await forgetting;
    expect((await logPosition(store)).get(writer)).to.include({ number: 1 });
  });

  it('says how many entries of the log were lost while PostgreSQL was away for long', async () => {
    const proxy = await startProxy(opened.databaseUrl);
    const away = openDatabase(proxy.url, () => undefined);
    const { log, lines } = createTestLog();
    const writer = new LogWriter(away, log, 2 ** 30, domainOf);
    try {
      writer.start(randomUUID());
      writer.add(entry('before'));
      await eventually(async () => expect(await messages()).to.deep.equal(['before']));
      await proxy.down();
      for (let number = 0; number < 20_010; number++) writer.add(entry(`line ${number}`));
      await eventually(() => expect(lines.map(({ level }) => level)).to.include(40));
      await proxy.up();
      await eventually(async () => expect(await messages(1)).to.deep.equal([lossOf(10)]));
      const all = (await messages()).reverse();
      expect(all).to.have.length(20_002);
      expect(all.slice(1, 20_001)).to.deep.equal(Array.from({ length: 20_000 }, (_, at) => `line ${at}`));
    } finally {
      await writer.stop();
      await away.close();
      await proxy.down();
    }
  });
  const lossOf = (entries: number) => `${entries} entries were lost: PostgreSQL did not take them in time`;
});
