/** Exports of more random installations than those of the everyday suite. */
import { startApi, type TestApi } from '../support/api.js';
import { expectData } from '../support/expect.js';
import { exportsChangeNothing } from '../support/random-exports.js';
import { SECRETS } from '../support/random-installations.js';

/** Of 40 installations each. */
const SEEDS = [20_261_214, 20_261_215, 20_261_216, 20_261_217, 20_261_218];

describe('an export', () => {
  let api: TestApi;
  before(async () => {
    api = await startApi();
    for (const name of SECRETS) expectData(await api.put(`/api/secrets/${name}`, { value: 'x' }));
  });
  after(() => api.close());

  for (const [at, seed] of SEEDS.entries())
    it(`plans no change when the export of any installation is applied (${at + 1} of ${SEEDS.length})`, () =>
      exportsChangeNothing(api, { seed, numRuns: 40 }));
});
