/** Services, object files and imports on two machines: both actor hosts act, handlers of both call, both compile. */
import { expect } from 'chai';
import { soakHandler } from '../../../bench/soak/handlers.js';
import type { TestBackend } from '../../support/backend.js';
import { startRedisBackend } from '../../support/backends/redis.js';
import { type S3Backend, startS3Backend } from '../../support/backends/s3.js';
import { eventually } from '../../support/eventually.js';
import { multipart } from '../../support/form.js';
import { slowToCompile } from '../../support/handler-sources.js';
import { call } from '../../support/http.js';
import { type Machine, type Machines, startMachines } from '../../support/machines.js';
import { withClient } from '../../support/postgres.js';
import { must } from '../../support/processes.js';
import { activeService, bind } from '../../support/test-services.js';
import { zipOf } from '../../support/zip.js';

/**
 * Each compiles for seconds, one at a time for each worker. More than a worker takes from the queue at a time
 * (`jobs/handler.ts`): the other one has some, too.
 */
const HANDLERS = 6;
const STEPS = 2_000_000;
/** The number of the first handler's source, which no other test compiles. */
const FIRST = 7_200;

describe('services and imports of two machines', function () {
  this.timeout(120_000);
  let machines: Machines;
  let both: readonly Machine[];
  let redis: TestBackend<'redis'>;
  let files: S3Backend;
  before(async () => {
    redis = await startRedisBackend();
    files = await startS3Backend();
    machines = await startMachines({ WORKER_CONCURRENCY: '1' });
    both = [machines.a, machines.b];
  });
  after(async () => {
    await machines?.close();
    await files?.remove();
    await redis?.remove();
  });

  const textAt = async (machine: Machine, path: string) => (await call(`${machine.gatewayUrl}${path}`)).text;

  it('the activation of a service reaches the actor hosts of both machines, and so does its end', async () => {
    const { a, b } = machines;
    const { hostname: host, port, username, password, pathname } = new URL(machines.database.url);
    await withClient(machines.database.url, async (client) => {
      await client.query('CREATE TABLE items (id integer, value integer, hits integer DEFAULT 0)');
      await client.query('INSERT INTO items VALUES (7, 77)');
    });
    const database = pathname.slice(1);
    const services = {
      cache: await activeService(a.api, 'redis', redis.config),
      pg: await activeService(b.api, 'postgres', { host, port: Number(port), database, username, password }),
    };
    const id = await a.deploy({ path: '/uses/{n}', code: soakHandler('v') });
    for (const [pool, service] of Object.entries(services)) await bind(b.api, id, service, pool);
    for (const machine of both) {
      expect(await textAt(machine, '/uses/7?use=cache')).to.equal('v 7');
      expect(await textAt(machine, '/uses/7?use=pg')).to.equal('v 77');
    }
    expect(await hits(), 'both wrote to one database').to.equal(2);
    expect((await a.api.post(`/api/services/${services.pg}/deactivate`)).status).to.equal(200);
    for (const machine of both)
      expect((await call(`${machine.gatewayUrl}/uses/7?use=pg`)).status).to.be.at.least(500);
    await withClient(machines.database.url, (client) => client.query('DROP TABLE items'));
  });

  it('the API of a machine without an actor host reaches object files by the actor host of another', async () => {
    const { a, b } = machines;
    await activeService(a.api, 'objstore', files.config);
    const form = multipart([
      { name: 'key', content: 'folder/a file.txt' },
      { name: 'file', filename: 'a file.txt', content: 'the content' },
    ]);
    const uploaded = await b.api.post('/api/minio/objects', form.body, { headers: form.headers });
    expect(uploaded.status, JSON.stringify(uploaded.body)).to.equal(200);
    await a.processes.get('actor-host')?.end();
    for (const { apiUrl } of both)
      expect((await call(`${apiUrl}/api/minio/objects/folder/a%20file.txt`)).text).to.equal('the content');
    await a.start('actor-host');
  });

  it('a machine without a gateway tries versions and sends queued requests by the gateway of another', async () => {
    const { a, b } = machines;
    const id = await a.deploy({ path: '/later', code: slowToCompile(STEPS, FIRST - 1), method: 'GET' });
    await b.processes.get('gateway')?.end();
    await a.processes.get('worker')?.end();
    const invoked = await must(b.api.post(`/api/endpoints/${id}/invoke`));
    expect(invoked).to.include({ status: 200, body: `${STEPS + FIRST - 1}`, version: 1 });
    expect(await must(b.api.get('/api/route?host=any&path=/later'))).to.have.nested.property(
      'match.endpoint_id',
      id,
    );
    const { job_id } = (await must(b.api.post(`/api/endpoints/${id}/enqueue`))) as { job_id: string };
    await eventually(async () =>
      expect(await must(b.api.get(`/api/jobs/${job_id}`))).to.include({ state: 'succeeded' }),
    );
    await a.start('worker');
    await b.start('gateway');
  });

  it('each run of a schedule has one job, although the clocks of the machines differ', async () => {
    const { a, b } = machines;
    const id = await a.deploy({ path: '/ticks', code: slowToCompile(STEPS, FIRST - 1), method: 'GET' });
    const at = `/api/endpoints/${id}/schedules`;
    const schedule = (await must(b.api.post(at, { cron: '*/2 * * * * *' }))) as { id: string };
    const runs = async () =>
      (await must(a.api.get(`${at}/${schedule.id}/runs`))) as { planned_at: string; state: string }[];
    await eventually(async () =>
      expect((await runs()).filter(({ state }) => state === 'succeeded').length).to.be.above(2),
    );
    await must(b.api.put(`${at}/${schedule.id}`, { enabled: false }));
    const planned = (await runs()).map(({ planned_at }) => planned_at);
    expect(new Set(planned).size).to.equal(planned.length);
  });

  it('handlers of a bundle are compiled by the workers of two machines, and run on both gateways', async () => {
    const names = Array.from({ length: HANDLERS }, (_, at) => `h${at}`);
    const paths = names.map((name) => [
      `/${name}`,
      { get: { operationId: name, responses: { 200: { description: 'ok' } } } },
    ]);
    const spec = {
      openapi: '3.0.3',
      info: { title: 'spread', version: '1' },
      paths: Object.fromEntries(paths),
    };
    const sources = names.map((name, at) => [`handlers/${name}.rs`, slowToCompile(STEPS, FIRST + at)]);
    const bundle = zipOf({ 'openapi.json': JSON.stringify(spec), ...Object.fromEntries(sources) });
    const form = multipart([{ name: 'bundle', filename: 'api.zip', content: bundle }]);
    const imported = await must(
      machines.a.api.post('/api/import/bundle?domain=*&compile=true&start=true', form.body, {
        headers: form.headers,
      }),
    );
    expect(imported).to.deep.include({ compiled: HANDLERS, started: HANDLERS, errors: [] });
    for (const machine of both)
      for (const [at, name] of names.entries())
        expect(await textAt(machine, `/${name}`)).to.equal(`${STEPS + FIRST + at}`);
    const workers = await withClient(machines.database.url, async (client) => {
      const sql = 'SELECT DISTINCT builds.worker_id FROM builds JOIN import_handlers ON build_id = builds.id';
      return (await client.query(sql)).rows;
    });
    expect(workers).to.have.length(2);
  });

  const hits = () =>
    withClient(
      machines.database.url,
      async (client) => (await client.query<{ hits: number }>('SELECT hits FROM items')).rows[0]?.hits,
    );
});
