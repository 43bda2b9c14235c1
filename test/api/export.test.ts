/** Exports: what is applied again changes nothing. */
import { expect } from 'chai';
import fc from 'fast-check';
import { startApi, type TestApi } from '../support/api.js';
import { expectData } from '../support/expect.js';
import { installation, makeInstallation, SECRETS } from '../support/random-installations.js';

interface Plan {
  readonly changes: readonly object[];
  readonly warnings: readonly string[];
}
/** Exports of a part. */
const PARTS = ['?domain=a.example', '?domain=*', '?stack=shop'];

type Files = Readonly<Record<string, string>>;

describe('an export', () => {
  let api: TestApi;
  before(async () => {
    api = await startApi();
    for (const name of SECRETS) expectData(await api.put(`/api/secrets/${name}`, { value: 'x' }));
  });
  after(() => api.close());

  const exported = async (query = '') =>
    expectData<{ files: Files }>(await api.get(`/api/export${query}`)).files;
  const changesOf = async (files: Files, query = '') =>
    expectData<Plan>(await api.post(`/api/apply?dry_run=true${query}`, { files })).changes;

  /** Parts of 200 installations. */
  const SEEDS = [1, 2, 3, 4, 5].map((part) => 20_261_213 + part);
  for (const [at, seed] of SEEDS.entries())
    it(`is an empty plan when it is applied, of any installation (${at + 1} of ${SEEDS.length})`, async () => {
      await fc.assert(
        fc.asyncProperty(installation, fc.constantFrom(...PARTS), async (made, part) => {
          await makeInstallation(api, made);
          const files = await exported();
          expect(await changesOf(files), files['edge.yaml']).to.deep.equal([]);
          expect(await exported()).to.deep.equal(files);
          expect(await changesOf(await exported(part)), part).to.deep.equal([]);
        }),
        { seed, numRuns: 40 },
      );
    });
});
