/** The soak of `bench/soak.ts` in short: mixed traffic leaves no error and nothing behind. */
import { expect } from 'chai';
import { soak } from '../../bench/soak/run.js';

describe('mixed traffic', function () {
  this.timeout(300_000);

  it('mixed traffic has only documented errors, and leaks no processes, files, rows, jobs or memory', async () => {
    const { outcomes, trends, leaks } = await soak({
      endpoints: 12,
      clients: 4,
      pauseMs: 10,
      changeEveryMs: 500,
      warmUpMs: 5_000,
      durationMs: 15_000,
      // An idle reader of imports, and idle connections with the actor host, may still count as what there was before;
      // only the long soak waits until they are gone.
      calmMs: 10_000,
      // In so short a time only a leak of much with each request shows.
      memory: { share: 0.5, bytes: 64 * 1024 ** 2 },
    });
    expect(outcomes.errors).to.deep.equal([]);
    for (const [kind, { done }] of outcomes.all) expect(done, kind).to.be.above(0);
    expect(leaks).to.deep.equal([]);
    expect(trends.filter(({ isFlat }) => !isFlat)).to.deep.equal([]);
  });
});
