/**
 * The examples in `examples/`, deployed as they are: folders with `endpoint.json` endpoint by endpoint, others as
 * bundles.
 */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import type { ServiceType } from '../../src/model/service-configs.js';
import type { HttpClient } from './client.js';
import { expectData } from './expect.js';
import { multipart } from './form.js';
import { deploy, type Stack } from './processes.js';
import { tempDir } from './temp.js';
import { bind } from './test-services.js';

export const EXAMPLES_FOLDER = new URL('../../../examples/', import.meta.url);
const BUNDLE_SCRIPT = fileURLToPath(new URL('../../../scripts/bundle.mjs', import.meta.url));

interface EndpointDefinition {
  readonly path: string;
}

/** Content of `endpoint.json`: one endpoint, or several with the same handler. */
interface Definition {
  readonly endpoint?: EndpointDefinition;
  readonly endpoints?: readonly EndpointDefinition[];
  /** The bindings it needs. */
  readonly services?: readonly { readonly pool_id: string; readonly service_type: ServiceType }[];
}

/** The part of the response to an import that tests use. */
export interface BundleImport {
  readonly endpoints_created: number;
  readonly endpoints_updated: number;
  readonly handlers_matched: number;
  readonly compiled: number;
  readonly started: number;
  readonly endpoints: readonly { readonly id: string; readonly name: string; readonly status: string }[];
  readonly errors: readonly unknown[];
}

/**
 * Deploys the endpoints of an example, and binds the services they need.
 * @param serviceOf the id of a service of this type; called once for each that has to be bound
 */
export async function deployExample(
  api: HttpClient,
  name: string,
  serviceOf: (type: ServiceType) => Promise<string>,
): Promise<void> {
  const read = (file: string) => readFile(new URL(`${name}/${file}`, EXAMPLES_FOLDER), 'utf8');
  const { endpoint, endpoints = [], services = [] } = JSON.parse(await read('endpoint.json')) as Definition;
  const code = await read('handler.rs');
  const bound: [poolId: string, serviceId: string][] = [];
  for (const { pool_id, service_type } of services) bound.push([pool_id, await serviceOf(service_type)]);
  for (const each of endpoint ? [endpoint, ...endpoints] : endpoints) {
    const id = await deploy(api, { ...each, code });
    for (const [poolId, serviceId] of bound) await bind(api, id, serviceId, poolId);
  }
}

/** Makes the bundle of an example, imports it for all domains, has it compiled and started. */
export async function importExample(stack: Stack, name: string): Promise<BundleImport> {
  const { headers, body } = multipart([
    { name: 'bundle', filename: `${name}.zip`, content: await bundleOf(name) },
  ]);
  const query = 'domain=*&compile=true&start=true';
  return expectData(await stack.api.post(`/api/import/bundle?${query}`, body, { headers }));
}

/** The bytes of the bundle that an example makes. */
export async function bundleOf(name: string): Promise<Buffer> {
  const folder = await tempDir('bundle');
  try {
    const out = join(folder.path, `${name}.zip`);
    await execa(process.execPath, [BUNDLE_SCRIPT, fileURLToPath(new URL(name, EXAMPLES_FOLDER)), out]);
    return await readFile(out);
  } finally {
    await folder.remove();
  }
}

/** Least configs of services, whose backends do not exist. */
export const LEAST_CONFIGS: Readonly<Record<ServiceType, object>> = {
  postgres: { host: 'h', database: 'd', username: 'u', password: 'a literal' },
  mysql: { host: 'h', database: 'd', username: 'u', password: 'a literal' },
  redis: { host: 'h' },
  ftp: { host: 'h', password: 'a literal' },
  sqlite: { path: 'a.db' },
  memcached: { host: 'h' },
  http: { base_url: 'https://a.example', token: 'a literal' },
  mongodb: { host: 'h' },
  objstore: { endpoint: 'h:1', access_key: 'a', secret_key: 'a literal', bucket: 'b' },
  email: { host: 'h', from_address: 'a@a.example' },
};

/** Makes the objects of an example, without compiling anything. */
export async function defineExample(api: HttpClient, name: string): Promise<void> {
  const file = new URL(`${name}/endpoint.json`, EXAMPLES_FOLDER);
  if (!existsSync(file)) {
    const { headers, body } = multipart([
      { name: 'bundle', filename: `${name}.zip`, content: await bundleOf(name) },
    ]);
    expectData(await api.post('/api/import/bundle?domain=*&validate=enforce', body, { headers }));
    return;
  }
  const example = JSON.parse(await readFile(file, 'utf8')) as Definition & {
    readonly domain: object;
    readonly collection: object;
  };
  const { endpoint, endpoints = [], services = [] } = example;
  const code = await readFile(new URL(`${name}/handler.rs`, EXAMPLES_FOLDER), 'utf8');
  const create = async (path: string, body: object) =>
    expectData<{ id: string }>(await api.post(path, body), 201).id;
  const domain_id = await create('/api/domains', example.domain);
  const collection_id = await create('/api/collections', { domain_id, ...example.collection });
  const bound: [poolId: string, serviceId: string][] = [];
  for (const { pool_id, service_type } of services) {
    const config = LEAST_CONFIGS[service_type];
    bound.push([pool_id, await create('/api/services', { name: pool_id, service_type, config })]);
  }
  for (const each of endpoint ? [endpoint, ...endpoints] : endpoints) {
    const id = await create('/api/endpoints', { ...each, collection_id, code });
    for (const [poolId, serviceId] of bound) await bind(api, id, serviceId, poolId);
  }
}
