/** Exports of OpenAPI documents, and what an import of them would change. */
import { expect } from 'chai';
import type { TestApi } from './api.js';
import { expectData } from './expect.js';

export interface Exported {
  readonly collection: { readonly id: string; readonly name: string } | null;
  readonly validate: 'off' | 'report' | 'enforce';
  readonly document: Readonly<Record<string, unknown>> & {
    readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  };
}

interface Plan {
  readonly endpoints_created: number;
  readonly endpoints: readonly { readonly name: string; readonly change: string }[];
}

/** The members of an endpoint that an import could change. */
export type Shown = Readonly<Record<'id' | 'name' | 'description' | 'path' | 'route' | 'code', string>> & {
  readonly policies: unknown;
  readonly limits: unknown;
  readonly enabled: boolean;
};

export async function exportedDocuments(
  api: TestApi,
  domain: string,
  query = '',
): Promise<{ readonly documents: readonly Exported[]; readonly warnings: readonly string[] }> {
  const answer = await api.get(`/api/export/openapi?domain=${domain}${query}`);
  const { documents } = expectData<{ documents: readonly Exported[] }>(answer);
  return { documents, warnings: (answer.body as { warnings?: string[] }).warnings ?? [] };
}

/** All endpoints of a host. */
export async function endpointsOf(api: TestApi, domain: string): Promise<readonly Shown[]> {
  return expectData<Shown[]>(await api.get(`/api/endpoints?domain=${domain}`));
}

/** Imports a document where it is from: what would be done, and that nothing is. @returns the names in it */
export async function expectNoChange(
  api: TestApi,
  domain: string,
  { document, collection, validate }: Exported,
): Promise<readonly string[]> {
  const body = { spec: JSON.stringify(document), domain, collection_id: collection?.id ?? null };
  const planned = await api.post(`/api/import/openapi?dry_run=true&validate=${validate}`, body);
  const { endpoints_created, endpoints } = expectData<Plan>(planned);
  expect(endpoints_created).to.equal(0);
  expect(endpoints.filter(({ change }) => change !== 'unchanged')).to.deep.equal([]);
  const before = await endpointsOf(api, domain);
  expectData(await api.post(`/api/import/openapi?validate=${validate}`, body));
  expect(await endpointsOf(api, domain)).to.deep.equal(before);
  return endpoints.map(({ name }) => name);
}
