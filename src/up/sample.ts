/** Deploys the sample of `examples/hello` through the public API, as a user would. */
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { toError } from '../errors.js';
import { joinRoute } from '../model/route-pattern.js';

const FOLDER = new URL('../../../examples/hello/', import.meta.url);

interface Sample {
  readonly domain: Readonly<Record<string, unknown>>;
  readonly collection: Readonly<Record<string, unknown>>;
  readonly endpoint: Readonly<Record<string, unknown>>;
}

interface Domain {
  readonly id: string;
  readonly host: string;
}

interface Collection {
  readonly id: string;
  readonly name: string;
  readonly domain_id: string;
  readonly base_path: string | null;
}

interface Endpoint {
  readonly id: string;
  readonly name: string;
  readonly path: string;
  readonly collection_id: string | null;
  readonly status: string;
  readonly running: boolean;
}

interface Answer {
  readonly ok: boolean;
  readonly error?: string;
  readonly data: unknown;
}

/** How long `get` is repeated: longer than the restart of a process takes. */
const GET_LIMIT_MS = 120_000;
const GET_AGAIN_MS = 500;

/** A client of the management API. */
export class ApiClient {
  readonly #baseUrl: string;
  readonly #apiKey: string | undefined;

  /** @param apiKey API_KEY, or the credential of this product */
  constructor(baseUrl: string, apiKey: string | undefined) {
    this.#baseUrl = baseUrl;
    this.#apiKey = apiKey;
  }

  /** @throws Error with the message of the API unless it succeeds */
  async call(method: string, path: string, body?: unknown): Promise<unknown> {
    const response = await fetch(this.#baseUrl + path, {
      method,
      headers: {
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(this.#apiKey !== undefined && { authorization: `Bearer ${this.#apiKey}` }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    }).catch((error: unknown) => {
      const { cause } = toError(error);
      throw new Error(`${method} ${path}: no answer (${toError(cause ?? error).message})`, { cause: error });
    });
    const answer = (await response.json()) as Answer;
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.error ?? response.status}`);
    return answer.data;
  }

  /**
   * Reads a resource. Repeats the call when it fails: the process may be restarting.
   * @throws Error when it fails for a long time
   */
  async get(path: string): Promise<unknown> {
    const deadline = performance.now() + GET_LIMIT_MS;
    for (;;) {
      try {
        return await this.call('GET', path);
      } catch (error) {
        if (performance.now() > deadline) throw error;
      }
      await delay(GET_AGAIN_MS);
    }
  }

  /** Makes a call that creates something; returns its id. */
  async create(path: string, body: unknown): Promise<string> {
    return ((await this.call('POST', path, body)) as { id: string }).id;
  }
}

/**
 * True when the database is empty, or has nothing but parts of the sample, because its deployment was interrupted or
 * failed. A sample that was stopped stays stopped.
 */
export async function isSampleMissing(api: ApiClient): Promise<boolean> {
  const { parts, all } = await findSample(api);
  const found = [parts.domain, parts.collection, parts.endpoint].filter((part) => part !== undefined);
  const { status } = parts.endpoint ?? {};
  return found.length === all.length && status !== 'running' && status !== 'stopped';
}

/** Creates, compiles and starts the sample endpoint; continues where an earlier deployment was interrupted. */
export async function deploySample(api: ApiClient): Promise<void> {
  const { sample, parts } = await findSample(api);
  const code = await readFile(fileURLToPath(new URL('handler.rs', FOLDER)), 'utf8');
  const domain_id = parts.domain?.id ?? (await api.create('/api/domains', sample.domain));
  const collection_id =
    parts.collection?.id ?? (await api.create('/api/collections', { ...sample.collection, domain_id }));
  const id =
    parts.endpoint?.id ?? (await api.create('/api/endpoints', { ...sample.endpoint, collection_id, code }));
  if (parts.endpoint?.status !== 'compiled') await api.call('POST', `/api/endpoints/${id}/compile`);
  await api.call('POST', `/api/endpoints/${id}/start`);
}

/** The sample, and what there is of it: others may have made objects of the same names elsewhere. */
async function findSample(api: ApiClient) {
  const [sample, domains, collections, endpoints] = await Promise.all([
    readSample(),
    api.get('/api/domains') as Promise<Domain[]>,
    api.get('/api/collections') as Promise<Collection[]>,
    api.get('/api/endpoints') as Promise<Endpoint[]>,
  ]);
  const domain = domains.find(({ host }) => host === sample.domain['host']);
  const collection = collections.find(
    ({ name, domain_id }) => name === sample.collection['name'] && domain_id === domain?.id,
  );
  const endpoint = endpoints.find(
    ({ name, collection_id }) => name === sample.endpoint['name'] && collection_id === collection?.id,
  );
  const all = [...domains, ...collections, ...endpoints];
  return { sample, parts: { domain, collection, endpoint }, all };
}

async function readSample(): Promise<Sample> {
  return JSON.parse(await readFile(new URL('endpoint.json', FOLDER), 'utf8')) as Sample;
}

/** The path of the sample endpoint with its parameter filled in, if it is running. */
export async function samplePath(api: ApiClient): Promise<string | undefined> {
  const { collection, endpoint } = (await findSample(api)).parts;
  if (!collection || !endpoint?.running) return undefined;
  return joinRoute(collection.base_path, endpoint.path).replace('{name}', 'Ada');
}
