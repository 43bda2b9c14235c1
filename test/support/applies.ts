/** Folders of files that tests apply over the API. */
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import type { FileContents } from '../../src/model/source-files.js';
import type { HttpClient, HttpResponse } from './client.js';
import { expectData } from './expect.js';
import { must } from './processes.js';

export interface PlanShown {
  readonly stack: string;
  readonly plan_hash: string;
  readonly changes: readonly {
    readonly action: string;
    readonly kind: string;
    readonly name: string;
    readonly fields: readonly { readonly path: string; readonly before: unknown; readonly after: unknown }[];
  }[];
  readonly warnings: readonly string[];
}

export interface ApplyShown {
  readonly id: string;
  readonly state: string;
  readonly plan_hash: string;
  readonly rollback_of: string | null;
  readonly actor: object | null;
  readonly request_id: string;
  readonly plan: PlanShown;
  readonly progress: Readonly<Record<string, { readonly done: number; readonly of: number }>>;
  readonly outcome: {
    readonly created: number;
    readonly updated: number;
    readonly deleted: number;
    readonly deployed: number;
    readonly warnings: readonly string[];
  } | null;
  readonly error_code: string | null;
  readonly error: string | null;
  readonly earlier: readonly { readonly id: string; readonly stack: string }[];
  readonly committed_at: string | null;
  readonly finished_at: string | null;
}

/** Files by their paths. */
export type Files = FileContents;

/** An endpoint of a folder of `folderOf`. */
export interface FolderEndpoint {
  readonly route: string;
  /** Null: it has no handler. */
  readonly code: string | null;
  readonly [member: string]: unknown;
}

/** A folder with one domain. Members that are not named are those of YAML, which reads JSON. */
export function folderOf(
  stack: string,
  host: string,
  endpoints: readonly FolderEndpoint[],
  more: { readonly domain?: object; readonly [member: string]: unknown } = {},
): Readonly<Record<string, string>> {
  const { domain, ...others } = more;
  const handlers: Record<string, string> = {};
  const shown = endpoints.map(({ route, code, ...rest }, at) => {
    if (code === null) return { host, method: 'POST', route, ...rest };
    handlers[`src/e${at}.rs`] = code;
    return { host, method: 'POST', route, handler: `src/e${at}.rs`, ...rest };
  });
  const edge = { stack, domains: [{ host, ...domain }], ...others, endpoints: shown };
  return { 'edge.yaml': JSON.stringify(edge), ...handlers };
}

/** Plans; the plan has to be one. */
export async function planOf(api: HttpClient, files: Files, query = ''): Promise<PlanShown> {
  return expectData<PlanShown>(await api.post(`/api/apply?dry_run=true${query}`, { files }));
}

/** Plans, and carries the plan out; resolves with the answer to that. */
export async function applyFiles(
  api: HttpClient,
  files: Files,
  query = '',
  headers?: Record<string, string>,
): Promise<HttpResponse> {
  const { plan_hash } = await planOf(api, files, query);
  return api.post(`/api/apply?plan_hash=${plan_hash}${query}`, { files }, headers && { headers });
}

export async function showApply(api: HttpClient, id: string): Promise<ApplyShown> {
  return expectData<ApplyShown>(await api.get(`/api/applies/${id}`));
}

/** Compiles a handler, so that an apply that needs it is not kept waiting. */
export async function compileAhead(api: HttpClient, code: string): Promise<void> {
  const path = `/ahead/${randomUUID()}`;
  const endpoint = { name: path, path, method: 'GET', domain: '*', code };
  const { id } = expectData<{ id: string }>(await api.post('/api/endpoints', endpoint), 201);
  await must(api.post(`/api/endpoints/${id}/compile`));
}

/** A row that a test has locked. */
export interface HeldRow {
  release(): Promise<void>;
}

/** Locks a row of an endpoint: whoever wants to change it waits. */
export async function holdRow(
  databaseUrl: string,
  endpointId: string,
  how: 'UPDATE' | 'NO KEY UPDATE' = 'UPDATE',
): Promise<HeldRow> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  await client.query('BEGIN');
  await client.query(`SELECT id FROM endpoints WHERE id = $1 FOR ${how}`, [endpointId]);
  return {
    release: async () => {
      await client.query('ROLLBACK');
      await client.end();
    },
  };
}
