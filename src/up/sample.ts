/** Deploys the sample of `examples/hello` through the public API, as a user would. */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { joinRoute } from '../route-pattern.js';

const FOLDER = new URL('../../../examples/hello/', import.meta.url);

interface Sample {
  readonly domain: Readonly<Record<string, unknown>>;
  readonly collection: Readonly<Record<string, unknown>>;
  readonly endpoint: Readonly<Record<string, unknown>>;
}

interface Answer {
  readonly ok: boolean;
  readonly error?: string;
  readonly data: unknown;
}

/** A client of the management API. */
export class ApiClient {
  constructor(
    private readonly baseUrl: string,
    private readonly apiKey: string | undefined,
  ) {}

  /** @throws Error with what the API said when it did not succeed */
  async call(method: string, path: string, body?: unknown): Promise<unknown> {
    const response = await fetch(this.baseUrl + path, {
      method,
      headers: {
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(this.apiKey !== undefined && { authorization: `Bearer ${this.apiKey}` }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const answer = (await response.json()) as Answer;
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.error ?? response.status}`);
    return answer.data;
  }

  /** For calls that answer with something that has an id. */
  async create(path: string, body: unknown): Promise<string> {
    return ((await this.call('POST', path, body)) as { id: string }).id;
  }
}

/** True when nothing has been defined yet. */
export async function isEmpty(api: ApiClient): Promise<boolean> {
  const [domains, endpoints] = await Promise.all([
    api.call('GET', '/api/domains'),
    api.call('GET', '/api/endpoints'),
  ]);
  return (domains as unknown[]).length === 0 && (endpoints as unknown[]).length === 0;
}

/** Creates, compiles and starts the sample endpoint. */
export async function deploySample(api: ApiClient): Promise<void> {
  const sample = JSON.parse(await readFile(new URL('endpoint.json', FOLDER), 'utf8')) as Sample;
  const code = await readFile(fileURLToPath(new URL('handler.rs', FOLDER)), 'utf8');
  const domainId = await api.create('/api/domains', sample.domain);
  const collectionId = await api.create('/api/collections', { ...sample.collection, domain_id: domainId });
  const id = await api.create('/api/endpoints', { ...sample.endpoint, collection_id: collectionId, code });
  await api.call('POST', `/api/endpoints/${id}/compile`);
  await api.call('POST', `/api/endpoints/${id}/start`);
}

/** The path under which a running sample endpoint answers, its parameter filled in, if there is one. */
export async function samplePath(api: ApiClient): Promise<string | undefined> {
  const sample = JSON.parse(await readFile(new URL('endpoint.json', FOLDER), 'utf8')) as Sample;
  const endpoints = (await api.call('GET', '/api/endpoints')) as {
    name: string;
    path: string;
    collection_id: string | null;
    running: boolean;
  }[];
  const found = endpoints.find(({ name, running }) => name === sample.endpoint['name'] && running);
  if (!found) return undefined;
  const { base_path: basePath } = found.collection_id
    ? ((await api.call('GET', `/api/collections/${found.collection_id}`)) as { base_path: string | null })
    : { base_path: null };
  return joinRoute(basePath, found.path).replace('{name}', 'Ada');
}
