/** The audit under attack, and set up as the documentation says: what it keeps, and what it does when it cannot. */
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { expect } from 'chai';
import { dropAccess } from '../../jobs/drop-access.js';
import { ADMIN, addUser, type Person } from '../support/access.js';
import { startApi, type TestApi } from '../support/api.js';
import { expectData, expectFailure } from '../support/expect.js';

interface Row {
  readonly action: string;
  readonly outcome: string;
  readonly status: number;
}

describe('the audit', () => {
  let api: TestApi;
  let admin: Person;

  beforeEach(async () => {
    api = await startApi();
    admin = await addUser(api, {}, { email: ADMIN, role: 'admin' });
  });
  afterEach(() => api.close());

  /** A request from another address of this machine. */
  const from = (localAddress: string, method: string, path: string, body?: object): Promise<number> =>
    new Promise((resolve, reject) => {
      const headers = { 'content-type': 'application/json' };
      const sent = request(
        `${api.url}${path}`,
        { localAddress, method, agent: false, headers },
        (response) => {
          response.resume().once('end', () => resolve(response.statusCode ?? 0));
        },
      );
      sent.once('error', reject).end(body && JSON.stringify(body));
    });
  const rowsOf = (where: object): Promise<Row[]> => api.store.knex('audit').where(where);

  it('the audit has a failed login, whatever else strangers send from the same address', async () => {
    const login = { email: ADMIN, password: 'the real attack' };
    for (let at = 0; at < 310; at++) await from('127.0.0.66', 'GET', '/api/domains');
    const foreign = { headers: { origin: 'http://evil.test' } };
    for (let at = 0; at < 70; at++) expectFailure(await api.get('/api/session', foreign), 'foreign_origin');
    for (const address of ['127.0.0.66', '127.0.0.67', '127.0.0.1'])
      expect(await from(address, 'POST', '/api/session', login)).to.equal(401);
    const logins = await rowsOf({ action: '/api/session', method: 'POST', outcome: 'refused' });
    expect(logins.map(({ status }) => status)).to.deep.equal([401, 401, 401]);
    const others = await rowsOf({ action: '/api/domains', outcome: 'refused' });
    expect(others.length).to.be.within(1, 120);
  });

  it('the audit says who has signed out, and has no sign-outs of strangers', async () => {
    const viewer = await addUser(api, admin, { email: 'v@example.test', role: 'viewer' });
    for (const headers of [{}, { cookie: 'egw_session=no' }, viewer.headers, viewer.headers])
      expectData(await api.delete('/api/session', { headers }));
    const rows = await api.store.knex('audit').where({ action: '/api/session', method: 'DELETE' });
    expect(rows.map(({ outcome, after }) => [outcome, after])).to.deep.equal([
      ['changed', { user_id: viewer.id }],
    ]);
  });

  it('the audit is not filled by the refused requests of one user', async () => {
    const viewer = await addUser(api, admin, { email: 'v@example.test', role: 'viewer' });
    for (let at = 0; at < 650; at++)
      expectFailure(await api.post('/api/domains', { name: 'x', host: 'x.test' }, viewer), 'forbidden');
    expect((await rowsOf({ outcome: 'refused' })).length).to.be.within(300, 600);
  });

  it('refuses changes while the audit cannot be written, and still answers reads', async () => {
    const { knex } = api.store;
    const domain = { name: 'unaudited', host: 'unaudited.example' };
    await knex.raw('ALTER TABLE audit RENAME TO audit_away');
    expectFailure(await api.post('/api/domains', domain, admin), 'audit_unavailable');
    expectData(await api.get('/api/domains', admin));
    await knex.raw('ALTER TABLE audit_away RENAME TO audit');
    expect(await knex('domains').pluck('host')).to.deep.equal([]);
    expectData(await api.post('/api/domains', domain, admin), 201);
    expect(await rowsOf({ action: '/api/domains', outcome: 'changed' })).to.have.length(1);
  });

  it('the audit is append-only with the rights that the documentation gives', async () => {
    const { knex } = api.store;
    const documented = /```sql\n([\s\S]*?)```/.exec(readFileSync('docs/SECURITY.md', 'utf8'))?.[1] ?? '';
    const role = `edge_app_${process.pid}_${Date.now()}`;
    const entry = {
      ...{
        actor: '{}',
        address: 'a',
        request_id: 'r',
        method: 'm',
        action: 'a',
        outcome: 'changed',
        status: 200,
      },
    };
    await knex.raw(`CREATE ROLE ${role}`);
    try {
      await knex.raw(documented.replaceAll('edge_app', role));
      const as = (work: (trx: typeof knex) => PromiseLike<unknown>) =>
        knex.transaction(async (trx) => {
          await trx.raw(`SET LOCAL ROLE ${role}`);
          return await work(trx);
        });
      await as((trx) => trx('audit').insert(entry));
      expect(await as((trx) => trx('audit').where({ request_id: 'r' }).first('status'))).to.deep.equal({
        status: 200,
      });
      for (const forbidden of [
        "UPDATE audit SET status = 0 WHERE request_id = 'r'",
        'DELETE FROM audit',
        'TRUNCATE audit',
        'DROP TABLE audit',
      ]) {
        const done = await as((trx) => trx.raw(forbidden)).then(
          () => 'done',
          (error: Error) => error.message,
        );
        expect(done, forbidden).to.match(/permission denied|must be owner/);
      }
    } finally {
      await knex.raw(`DROP OWNED BY ${role}`);
      await knex.raw(`DROP ROLE ${role}`);
    }
  });

  it('deletes rows of the audit older than AUDIT_RETENTION_DAYS, and sessions that are over', async () => {
    const { knex } = api.store;
    const viewer = await addUser(api, admin, { email: 'v@example.test', role: 'viewer' });
    expectData(await api.post('/api/domains', { name: 'kept', host: 'kept.example' }, admin), 201);
    const before = await knex('audit').orderBy('id').pluck('id');
    const old = new Date(Date.now() - 366 * 86_400_000);
    await knex('audit').where({ id: before[0] }).update({ at: old });
    await knex('sessions').where({ user_id: viewer.id }).update({ seen_at: old });
    await dropAccess(api.store, api.config);
    expect(await knex('audit').orderBy('id').pluck('id')).to.deep.equal(before.slice(1));
    expect(await knex('sessions').pluck('user_id')).to.deep.equal([admin.id]);
  });
});
