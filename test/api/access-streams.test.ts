/** Streams of events end when whoever reads them may no longer do so, or sees something else. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { LogEntry } from '../../src/model/log-entry.js';
import { ensureLogPartition, hourOf } from '../../src/store/log-partitions.js';
import { addLogWriter, databaseTime, writeLogs } from '../../src/store/log-writing.js';
import { ADMIN, addUser, makeToken, type Person } from '../support/access.js';
import { startApi, type TestApi } from '../support/api.js';
import { eventually } from '../support/eventually.js';
import { expectData } from '../support/expect.js';
import { type LogTail, tailLog } from '../support/log-tail.js';

const A = 'a.example';
const B = 'b.example';

describe('a live log', function () {
  this.timeout(60_000);
  let api: TestApi;
  let admin: Person;
  let endpoint: string;
  let write: (message: string) => Promise<void>;
  const tails: LogTail[] = [];

  before(async () => {
    api = await startApi();
    admin = await addUser(api, {}, { email: ADMIN, role: 'admin' });
    for (const host of [A, B]) expectData(await api.post('/api/domains', { name: host, host }, admin), 201);
    const made = { name: 'e', path: '/e', method: 'GET', domain: A };
    endpoint = expectData<{ id: string }>(await api.post('/api/endpoints', made, admin), 201).id;
    const writer = await addLogWriter(api.store, randomUUID());
    const at = await databaseTime(api.store);
    await ensureLogPartition(api.store, hourOf(at));
    let number = 0;
    write = async (message) => {
      const entry: LogEntry = {
        ...{ at, kind: 'output', level: 'info', endpointId: endpoint, version: 1, requestId: null },
        ...{ message, fields: null, request: null },
      };
      await writeLogs(api.store, writer, [{ ...entry, at, number: ++number }]);
    };
  });
  afterEach(async () => {
    for (const tail of tails.splice(0)) await tail.close();
  });
  after(() => api.close());

  const follow = async ({ headers }: Person, path = '/api/logs'): Promise<LogTail> => {
    const tail = await tailLog(`${api.url}${path}`, undefined, headers);
    tails.push(tail);
    await write('before');
    await eventually(() => expect(tail.received.at(-1)?.entry.message).to.equal('before'));
    return tail;
  };
  /** Entries go on until the server has ended the stream. */
  const ends = async (tail: LogTail): Promise<void> => {
    let isOver = false;
    void tail.ended.then(() => {
      isOver = true;
    });
    await eventually(async () => {
      await write('afterwards');
      expect(isOver).to.equal(true);
    });
    const received = tail.received.length;
    await write('too late');
    expect(tail.received).to.have.length(received);
  };
  const addEditor = (email: string) => addUser(api, admin, { email, role: 'editor', domains: [A] });

  it('ends a live log when its token is revoked, and not that of the session that made the token', async () => {
    const editor = await addEditor('token@example.test');
    const token = await makeToken(api, editor, ['logs:read']);
    const [ofToken, ofSession] = [await follow(token), await follow(editor)];
    expectData(await api.delete(`/api/tokens/${token.id}`, editor));
    await ends(ofToken);
    await write('for the session');
    await eventually(() => expect(ofSession.received.at(-1)?.entry.message).to.equal('for the session'));
  });

  it('ends a live log when its session ends', async () => {
    const editor = await addEditor('session@example.test');
    const tail = await follow(editor);
    expectData(await api.delete('/api/session', editor));
    await ends(tail);
  });

  it('ends a live log when its user gets other domains, or is deleted', async () => {
    const editor = await addEditor('moved@example.test');
    const tail = await follow(editor);
    expectData(await api.put(`/api/users/${editor.id}`, { domains: [A, B] }, admin));
    await ends(tail);
    const again = await follow(editor);
    expectData(await api.delete(`/api/users/${editor.id}`, admin));
    await ends(again);
  });

  it('sends nothing more to the live log of an endpoint that has moved to a domain of others', async () => {
    const editor = await addEditor('left@example.test');
    const tail = await follow(editor, `/api/endpoints/${endpoint}/logs`);
    const all = await follow(admin);
    expectData(await api.put(`/api/endpoints/${endpoint}`, { domain: B }, admin));
    await write('of others');
    await eventually(() => expect(all.received.at(-1)?.entry.message).to.equal('of others'));
    expect(tail.received.map(({ entry }) => entry.message)).not.to.include('of others');
    expectData(await api.put(`/api/endpoints/${endpoint}`, { domain: A }, admin));
  });

  it('ends a live log when its session has been idle for too long', async () => {
    const editor = await addEditor('idle@example.test');
    const tail = await follow(editor);
    const idle = new Date(Date.now() - 13 * 3_600_000);
    await api.store.knex('sessions').where({ user_id: editor.id }).update({ seen_at: idle });
    await ends(tail);
  });
});
