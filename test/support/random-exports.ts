/** Exports of random installations, of the whole and of parts, which are applied again. */
import { expect } from 'chai';
import fc from 'fast-check';
import { parse } from 'yaml';
import type { TestApi } from './api.js';
import { expectData, expectFailure } from './expect.js';
import { askForPlan, type Files, type ShownPlan } from './plans.js';
import { installation, makeInstallation } from './random-installations.js';

/** Exports of a part. */
const PARTS = ['?domain=a.example', '?domain=*', '?stack=shop'];

interface FileObject {
  readonly host?: string;
  readonly collection_host?: string;
  readonly stack?: string | null;
}

/** Whether the export of the whole has something of a part. */
function hasPart(files: Files, part: string): boolean {
  const { stack, secrets, ...lists } = parse(files['edge.yaml'] ?? '') as Record<string, unknown>;
  const [name, value] = part.slice(1).split('=');
  const objects = Object.values(lists).flat() as FileObject[];
  return objects.some(({ host, collection_host, stack: own = stack }) =>
    name === 'stack' ? own === value : host === value || collection_host === value,
  );
}

/** Checks that the plan of an export is empty, of so many installations. */
export async function exportsChangeNothing(
  api: TestApi,
  parameters: { readonly seed: number; readonly numRuns: number },
): Promise<void> {
  const exported = async (query = '') =>
    expectData<{ files: Files }>(await api.get(`/api/export${query}`)).files;
  const changesOf = async (files: Files) => expectData<ShownPlan>(await askForPlan(api, files)).changes;
  await fc.assert(
    fc.asyncProperty(installation, fc.constantFrom(...PARTS), async (made, part) => {
      await makeInstallation(api, made);
      const files = await exported();
      expect(await changesOf(files), files['edge.yaml']).to.deep.equal([]);
      expect(await exported()).to.deep.equal(files);
      if (hasPart(files, part)) expect(await changesOf(await exported(part)), part).to.deep.equal([]);
      else expectFailure(await api.get(`/api/export${part}`), 'not_found', /There is nothing of the/);
    }),
    parameters,
  );
}
