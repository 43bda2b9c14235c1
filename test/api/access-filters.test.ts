/** What is listed or added up over domains has only what somebody may see: logs, figures, statistics. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { ALL_ENDPOINTS, saveFigures } from '../../src/store/figures.js';
import { ensureLogPartition, hourOf } from '../../src/store/log-partitions.js';
import { addLogWriter, writeLogs } from '../../src/store/log-writing.js';
import { ADMIN, addUser, makeToken, type Person } from '../support/access.js';
import { startApi, type TestApi } from '../support/api.js';
import { type DomainObjects, fillDomain } from '../support/domain-objects.js';
import { expectData, expectFailure } from '../support/expect.js';
import { uniqueName } from '../support/names.js';

const [OWN, FOREIGN] = ['own.example', 'foreign.example'];
const REQUESTS = { [OWN]: 2, [FOREIGN]: 5 };

describe('people who are limited to a domain', () => {
  let api: TestApi;
  let admin: Person;
  /** An editor, and an admin, of one domain; and a token of an admin for it. */
  let limited: readonly Person[];
  const objects: Record<string, DomainObjects> = {};

  before(async () => {
    api = await startApi();
    admin = await addUser(api, {}, { email: ADMIN, role: 'admin' });
    for (const host of [OWN, FOREIGN]) objects[host] = await fillDomain(api, admin, host);
    const domains = [OWN];
    limited = [
      await addUser(api, admin, { email: 'editor@example.test', role: 'editor', domains }),
      await addUser(api, admin, { email: 'admin@example.test', role: 'admin', domains }),
      await makeToken(
        api,
        admin,
        ['logs:read', 'statistics:read', 'objects:read', 'services:read', 'secrets:write'],
        [OWN],
      ),
    ];
    await writeFiguresAndLogs();
  });
  after(() => api.close());

  async function writeFiguresAndLogs(): Promise<void> {
    const at = Date.now() - 120_000;
    const minute = Math.floor(at / 60_000) * 60_000;
    const figures = (endpoint_id: string, status_2xx: number) => ({
      ...{ endpoint_id, at: minute, version: 1, status_2xx, status_3xx: 0, status_4xx: 0, status_5xx: 0 },
      ...{ status_other: 0, restarts: 0, cpu_seconds: 0, in_flight: 0, memory_bytes: 1 },
      ...{ buckets: [100], counts: [status_2xx] },
    });
    const endpoint = (host: string) => objects[host]?.['endpoints'] ?? '';
    await saveFigures(api.store, randomUUID(), [
      figures(endpoint(OWN), REQUESTS[OWN] ?? 0),
      figures(endpoint(FOREIGN), REQUESTS[FOREIGN] ?? 0),
      figures(ALL_ENDPOINTS, 7),
    ]);
    await ensureLogPartition(api.store, hourOf(at));
    const entry = (host: string, number: number) => ({
      ...{
        at,
        number,
        kind: 'output' as const,
        level: 'info' as const,
        endpointId: endpoint(host),
        version: 1,
      },
      ...{ requestId: null, message: `said at ${host}`, fields: {}, request: null },
    });
    await writeLogs(api.store, await addLogWriter(api.store, randomUUID()), [
      entry(OWN, 1),
      entry(FOREIGN, 2),
    ]);
  }

  const messagesOf = async (person: Person, query = '') => {
    const page = expectData<{ items: { message: string }[] }>(await api.get(`/api/logs${query}`, person));
    return page.items.map(({ message }) => message);
  };

  it('lists only log entries of endpoints of the domain that somebody is limited to', async () => {
    expect(await messagesOf(admin)).to.have.members([`said at ${OWN}`, `said at ${FOREIGN}`]);
    for (const person of limited) {
      expect(await messagesOf(person)).to.deep.equal([`said at ${OWN}`]);
      expect(await messagesOf(person, '?search=said')).to.deep.equal([`said at ${OWN}`]);
    }
  });

  it('adds up only requests of the domain that somebody is limited to in figures over time', async () => {
    const requestsOf = async (person: Person) => {
      const series = expectData<{ points: { requests: number }[] }>(await api.get('/api/series', person));
      return series.points.reduce((sum, { requests }) => sum + requests, 0);
    };
    expect(await requestsOf(admin)).to.equal(7);
    for (const person of limited) expect(await requestsOf(person)).to.equal(REQUESTS[OWN]);
  });

  it('counts only endpoints and requests of the domain that somebody is limited to in statistics', async () => {
    const statsOf = async (person: Person) => expectData(await api.get('/api/stats', person));
    // Each domain has the one that was made, and the one that was imported.
    expect(await statsOf(admin)).to.include({ endpoints_total: 4 });
    for (const person of limited)
      expect(await statsOf(person)).to.include({ endpoints_total: 2, requests_handled: REQUESTS[OWN] });
  });

  it('uses only an object storage that is for the domain that somebody is limited to', async () => {
    const config = {
      endpoint: 'http://127.0.0.1:1',
      bucket: 'b',
      access_key: 'a',
      secret_key: 's',
      region: 'r',
    };
    const storage = (domains: readonly string[]) =>
      api.post(
        '/api/services',
        { name: uniqueName('files'), service_type: 'objstore', config, domains },
        admin,
      );
    const theirs = expectData<{ id: string }>(await storage([FOREIGN]), 201).id;
    await api.store.knex('services').where({ id: theirs }).update({ activated_at: new Date() });
    for (const person of limited)
      expectFailure(await api.get('/api/minio/objects', person), 'no_object_storage', /of your domains/);
    const ours = expectData<{ id: string }>(await storage([OWN]), 201).id;
    await api.store.knex('services').where({ id: ours }).update({ activated_at: new Date() });
    // It is found, and nobody is there who could reach it.
    for (const person of limited) expectFailure(await api.get('/api/minio/objects', person), 'no_actor_host');
  });

  it('refuses the 21st alert of an editor who is limited to a domain, and accepts one of an admin', async () => {
    const alert = { on: 'crash_loop', url: 'https://93.184.215.14/hook', scope: { domain: OWN } };
    const [editor = admin] = limited;
    // Each domain has one already. They come at once.
    const asked = Array.from({ length: 30 }, () => api.post('/api/alerts', alert, editor));
    const refused = (await Promise.all(asked)).filter(({ status }) => status !== 201);
    expect(refused).to.have.length(11);
    for (const response of refused) expectFailure(response, 'too_many_alerts', /^Your domains have 20/);
    expectData(await api.post('/api/alerts', alert, admin), 201);
  });

  it('keeps places for alerts of people who are not limited, whoever else makes some', async () => {
    const alert = { on: 'crash_loop', url: 'https://93.184.215.14/hook', scope: { domain: FOREIGN } };
    const first = expectData<{ id: string }>(await api.post('/api/alerts', alert, admin), 201);
    const { knex } = api.store;
    const row = await knex('alerts').where({ id: first.id }).first();
    const taken = await knex('alerts').pluck<string[]>('id');
    const rows = Array.from({ length: 80 - taken.length }, () => ({ ...row, id: randomUUID() }));
    // The driver would take an object for a text, not for JSON.
    await knex('alerts').insert(rows.map((added) => ({ ...added, scope: JSON.stringify(added.scope) })));
    await knex('alerts')
      .where({ scope: JSON.stringify({ domain: OWN }) })
      .update({ scope: JSON.stringify({ domain: FOREIGN }) });
    const [editor = admin] = limited;
    const own = { ...alert, scope: { domain: OWN } };
    expectFailure(await api.post('/api/alerts', own, editor), 'too_many_alerts', /^There are 80/);
    expectData(await api.post('/api/alerts', own, admin), 201);
  });

  it('shows secrets in configs of services to nobody who is limited to a domain, not even to an admin', async () => {
    const path = `/api/services/${objects[OWN]?.['services']}`;
    expect(JSON.stringify((await api.get(path, admin)).body)).to.include(`password of ${OWN}`);
    for (const person of limited)
      expect(JSON.stringify(expectData(await api.get(path, person)))).not.to.include(`password of ${OWN}`);
  });
});
