/** The management API calls of the traffic, each response checked. */
import { multipart } from '../../test/support/form.js';
import { must } from '../../test/support/processes.js';
import { zipOf } from '../../test/support/zip.js';
import { soakHandler } from './handlers.js';
import type { Landscape, SoakEndpoint } from './landscape.js';
import type { Outcomes } from './outcomes.js';

interface HasId {
  readonly id: string;
}

/** Endpoints that are being changed, which excludes concurrent changes. */
const busy = new WeakSet<SoakEndpoint>();

/** Gives an endpoint new code, compiles it and starts it. @param handler makes the code of a variant */
export async function redeploy(
  { stack: { api } }: Landscape,
  outcomes: Outcomes,
  endpoint: SoakEndpoint,
  turn: number,
  handler = soakHandler,
): Promise<void> {
  await alone(endpoint, async () => {
    const variant = `${endpoint.path.slice(1)}.${turn}.${process.hrtime.bigint()}`;
    await outcomes.run('redeployment', async () => {
      await must(api.put(`/api/endpoints/${endpoint.id}`, { code: handler(variant) }));
      await must(api.post(`/api/endpoints/${endpoint.id}/compile`));
      endpoint.variants.add(variant);
      await must(api.post(`/api/endpoints/${endpoint.id}/start`));
      // From here on older variants cannot respond.
      for (const old of endpoint.variants) if (old !== variant) endpoint.variants.delete(old);
    });
  });
}

/** Stops an endpoint and starts it again. */
export async function stopAndStart(
  { stack: { api } }: Landscape,
  outcomes: Outcomes,
  endpoint: SoakEndpoint,
): Promise<void> {
  await alone(endpoint, async () => {
    endpoint.mayBeDown = true;
    await outcomes.run('stop and start', async () => {
      await must(api.post(`/api/endpoints/${endpoint.id}/stop`));
      await must(api.post(`/api/endpoints/${endpoint.id}/start`));
      endpoint.mayBeDown = false;
    });
  });
}

/** Creates one of each resource, reads, changes and deletes it; includes documented errors. */
export async function changeApi(
  { stack: { api } }: Landscape,
  outcomes: Outcomes,
  turn: number,
): Promise<void> {
  await outcomes.run('API objects', async () => {
    const host = `h${turn}.${process.hrtime.bigint()}.example`;
    const domain = (await must(api.post('/api/domains', { name: host, host }))) as HasId;
    const collection = (await must(
      api.post('/api/collections', { name: host, domain_id: domain.id, base_path: '/api' }),
    )) as HasId;
    const definition = { name: host, path: '/x/{id}', method: 'GET', collection_id: collection.id };
    const endpoint = (await must(api.post('/api/endpoints', { ...definition, domain: host }))) as HasId;
    expectStatus(await api.post('/api/endpoints', { ...definition, domain: host }), 409);
    expectStatus(await api.post('/api/endpoints', { ...definition, method: 'FETCH' }), 400);
    expectStatus(await api.post(`/api/endpoints/${endpoint.id}/start`), 409);
    await must(api.put(`/api/endpoints/${endpoint.id}`, { description: 'changed' }));
    for (const path of ['/api/endpoints', '/api/domains', '/api/collections', '/api/services', '/api/stats'])
      await must(api.get(path));
    await must(api.delete(`/api/domains/${domain.id}`));
    expectStatus(await api.get(`/api/endpoints/${endpoint.id}`), 404);
  });
  await outcomes.run('API services', async () => {
    const config = { path: `nowhere/${turn}.db` };
    const service = (await must(
      api.post('/api/services', { name: `s${turn}`, service_type: 'sqlite', config }),
    )) as HasId;
    await must(api.post(`/api/services/${service.id}/test`));
    expectStatus(await api.post(`/api/services/${service.id}/activate`), 200);
    expectStatus(await api.post(`/api/services/${service.id}/deactivate`), 200);
    await must(api.delete(`/api/services/${service.id}`));
  });
  await outcomes.run('compile error', async () => {
    const path = `/broken/${process.hrtime.bigint()}`;
    const definition = { name: path, path, method: 'GET', domain: '*', code: `fn main() { ${turn} }` };
    const endpoint = (await must(api.post('/api/endpoints', definition))) as HasId;
    expectStatus(await api.post(`/api/endpoints/${endpoint.id}/compile`), 422);
    await must(api.delete(`/api/endpoints/${endpoint.id}`));
  });
}

/** Imports a small bundle, compiles and starts it, calls it, and deletes the created resources. */
export async function importBundle(
  { stack: { api, gateway } }: Landscape,
  outcomes: Outcomes,
  turn: number,
): Promise<void> {
  await outcomes.run('import', async () => {
    const name = `bundle-${turn}-${process.hrtime.bigint()}`;
    const operations = ['one', 'two'].map((operationId) => [
      `/${operationId}/{n}`,
      {
        get: {
          operationId,
          parameters: [{ name: 'n', in: 'path', required: true, schema: { type: 'integer' } }],
          responses: { 200: { description: 'ok' } },
        },
      },
    ]);
    const spec = {
      openapi: '3.0.3',
      info: { title: name, version: '1' },
      servers: [{ url: `/${name}` }],
      paths: Object.fromEntries(operations),
    };
    const zip = zipOf({
      'openapi.json': JSON.stringify(spec),
      // One is compiled each time, one is known.
      'handlers/one.rs': soakHandler(name),
      'handlers/two.rs': soakHandler('two'),
    });
    const form = multipart([{ name: 'bundle', filename: 'api.zip', content: zip }]);
    const imported = (await must(
      api.post('/api/import/bundle?domain=*&compile=true&start=true', form.body, { headers: form.headers }),
    )) as { started: number; errors: readonly unknown[]; endpoints: readonly HasId[] };
    if (imported.started !== 2) throw new Error(`not started: ${JSON.stringify(imported.errors)}`);
    const { status, body } = await gateway.get(`/${name}/one/7`);
    if (status !== 200 || body !== `${name} 7`) throw new Error(`answered ${status} ${String(body)}`);
    for (const { id } of imported.endpoints) await must(api.delete(`/api/endpoints/${id}`));
  });
}

async function alone(endpoint: SoakEndpoint, work: () => Promise<void>): Promise<void> {
  if (busy.has(endpoint)) return;
  busy.add(endpoint);
  endpoint.changes++;
  await work();
  endpoint.changes++;
  busy.delete(endpoint);
}

function expectStatus({ status, body }: { status: number; body: unknown }, wanted: number): void {
  if (status !== wanted) throw new Error(`answered ${status} instead of ${wanted}: ${JSON.stringify(body)}`);
}
