/** How a live log is resumed, wherever it is cut off: over HTTP, with entries of many gateways. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { LogEntry } from '../../src/model/log-entry.js';
import { type Database, openDatabase } from '../../src/store/database.js';
import { ensureLogPartition, hourOf } from '../../src/store/log-partitions.js';
import { addLogWriter, databaseTime, writeLogs } from '../../src/store/log-writing.js';
import { eventually } from '../support/eventually.js';
import { call } from '../support/http.js';
import { type LogTail, tailLog } from '../support/log-tail.js';
import { type Stack, startStack } from '../support/processes.js';

const HOUR_MS = 3_600_000;

/** A gateway that writes entries. */
interface Writer {
  readonly id: number;
  number: number;
}

describe('a live log that is cut off', function () {
  this.timeout(60_000);
  let stack: Stack;
  let store: Database;
  let now: number;
  const tails: LogTail[] = [];
  before(async () => {
    stack = await startStack({ processes: ['web'] });
    store = openDatabase(stack.databaseUrl, () => undefined);
    now = await databaseTime(store);
  });
  afterEach(async () => {
    for (const tail of tails.splice(0)) await tail.close();
  });
  after(async () => {
    await store?.close();
    await stack?.close();
  });

  const newWriter = async (): Promise<Writer> => ({ id: await addLogWriter(store, randomUUID()), number: 0 });
  const write = async (writer: Writer, endpointId: string, message: string, at: number) => {
    await ensureLogPartition(store, hourOf(at));
    const entry: LogEntry = {
      ...{ at, kind: 'output', level: 'info', endpointId, version: 1, requestId: null },
      ...{ message, fields: null, request: null },
    };
    await writeLogs(store, writer.id, [{ ...entry, at, number: ++writer.number }]);
  };
  const tail = async (endpointId: string, lastEventId?: string, limit = 100) => {
    const url = `${stack.apiUrl}/api/logs?endpoint_id=${endpointId}&limit=${limit}`;
    const opened = await tailLog(url, lastEventId);
    tails.push(opened);
    return opened;
  };
  const messagesOf = ({ received }: LogTail) => received.map(({ entry }) => entry.message);

  it('a live log that is cut off continues behind its last entry, also among the first ones', async () => {
    const endpoint = randomUUID();
    const writers = [await newWriter(), await newWriter(), await newWriter()];
    // Of some gateways only long ago, in other orders than their numbers, at the same time.
    const hours = [50, 49, 20, 20, 7, 4, 2, 2, 1, 0, 0, 0];
    for (const [place, ago] of hours.entries()) {
      const writer = writers[ago > 10 ? 0 : (place * place) % 3];
      if (writer) await write(writer, endpoint, `entry ${place}`, now - ago * HOUR_MS);
      if (writer) await write(writer, randomUUID(), 'of another', now - ago * HOUR_MS);
    }
    const all = hours.map((_, place) => `entry ${place}`);
    const first = await tail(endpoint, undefined, 12);
    await eventually(() => expect(messagesOf(first)).to.have.members(all));
    expect(first.ids).to.have.length(13);
    for (const [place, id] of first.ids.entries()) {
      const rest = await tail(endpoint, id);
      await eventually(() => expect(rest.ids.length).to.be.above(12 - place));
      expect(messagesOf(rest), `behind ${place}`).to.deep.equal(messagesOf(first).slice(place));
      await rest.close();
    }
  });

  it('a live log that is cut off before its first entry continues with all that follow', async () => {
    const endpoint = randomUUID();
    const [own, other] = [await newWriter(), await newWriter()];
    await write(other, randomUUID(), 'of another', now);
    const first = await tail(endpoint);
    await eventually(() => expect(first.ids).to.have.length(1));
    await first.close();
    for (const writer of [own, other, await newWriter()])
      await write(writer, endpoint, `of ${writer.id}`, now + 1_000);
    const second = await tail(endpoint, first.ids[0]);
    await eventually(() => expect(second.received).to.have.length(3));
    expect(new Set(messagesOf(second)).size).to.equal(3);
  });

  it('a live log is resumed with a short id, though there were many gateways', async () => {
    const endpoint = randomUUID();
    const old = await newWriter();
    await write(old, endpoint, 'long ago', now - 30 * HOUR_MS);
    await store.knex.raw(
      `INSERT INTO log_writers (node_id, last_number, last_at)
       SELECT gen_random_uuid(), 10, now() - interval '5 hours' - number * interval '1 second'
         FROM generate_series(1, 5000) AS numbers (number)`,
    );
    const busy = await newWriter();
    await write(busy, endpoint, 'just now', now);
    const first = await tail(endpoint, undefined, 1);
    await eventually(() => expect(messagesOf(first)).to.deep.equal(['just now']));
    await first.close();
    const last = first.ids.at(-1) ?? '';
    expect(last.length).to.be.below(500);
    await write(old, endpoint, 'again', now + 1_000);
    await write(busy, endpoint, 'and again', now + 2_000);
    const second = await tail(endpoint, last);
    await eventually(() => expect(messagesOf(second)).to.deep.equal(['again', 'and again']));
  });

  it('a resumed live log has all entries, also more than are read at a time', async () => {
    const endpoint = randomUUID();
    const [many, few] = [await newWriter(), await newWriter()];
    const first = await tail(endpoint);
    await eventually(() => expect(first.ids).to.have.length(1));
    await first.close();
    const entries = Array.from({ length: 1_200 }, (_, place): LogEntry & { number: number } => ({
      ...{ at: now + place, kind: 'output', level: 'info', endpointId: endpoint, version: 1 },
      ...{ requestId: null, message: `line ${place}`, fields: null, request: null, number: place + 1 },
    }));
    await ensureLogPartition(store, hourOf(now) + HOUR_MS);
    await writeLogs(store, many.id, entries);
    await write(few, endpoint, 'line 1200', now + 1_200);
    const second = await tail(endpoint, first.ids[0]);
    await eventually(() => expect(second.received).to.have.length(1_201));
    expect(new Set(messagesOf(second)).size).to.equal(1_201);
    await second.close();
    for (const place of [0, 499, 500, 999]) {
      const rest = await tail(endpoint, second.received[place]?.eventId);
      await eventually(() => expect(rest.received).to.have.length(1_200 - place));
      const told = messagesOf(second).slice(0, place + 1);
      expect(new Set([...told, ...messagesOf(rest)]).size).to.equal(1_201);
    }
  });

  it('refuses a Last-Event-ID that is not valid', async () => {
    const { id } = await newWriter();
    for (const lastEventId of ['x', '1.1', '1.1.1_', '1.1.1_1.2.2', '-1.1.1', `${id}.999999.1`]) {
      const { status, text } = await call(`${stack.apiUrl}/api/logs`, {
        headers: { accept: 'text/event-stream', 'last-event-id': lastEventId },
      });
      expect(status, lastEventId).to.equal(400);
      expect(text).to.match(/Last-Event-ID: is none of an entry; leave it out to begin anew/);
    }
  });
});
