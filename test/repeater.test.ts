import { expect } from 'chai';
import { Repeater } from '../src/repeater.js';

describe('repeater', () => {
  it('runs once more for all that asked during a run', async () => {
    let runs = 0;
    let finish: () => void = () => undefined;
    const repeater = new Repeater(async () => {
      runs++;
      await new Promise<void>((resolve) => {
        finish = resolve;
      });
    });
    const asked = [repeater.run(), repeater.run(), repeater.run()];
    expect(runs).to.equal(1);
    finish();
    await Promise.resolve();
    await Promise.resolve();
    expect(runs).to.equal(2);
    finish();
    await Promise.all(asked);
    expect(runs).to.equal(2);
  });

  it('misses nobody who asks at the moment a run ends', async () => {
    let wanted = 0;
    let done = 0;
    const repeater = new Repeater(async () => {
      done = wanted;
    });
    for (let i = 1; i <= 1_000; i++) {
      wanted = i;
      const asked = repeater.run();
      // Every now and then, exactly when the run before is over.
      for (let turn = 0; turn < i % 5; turn++) await Promise.resolve();
      if (i % 3 === 0) await asked;
    }
    await repeater.idle();
    expect(done).to.equal(1_000);
  });

  it('runs again after a run that failed', async () => {
    let runs = 0;
    const repeater = new Repeater(async () => {
      if (runs++ === 0) throw new Error('once');
    });
    const failure = await repeater.run().catch((thrown: unknown) => thrown);
    expect(failure).to.have.property('message', 'once');
    await repeater.run();
    expect(runs).to.equal(2);
  });
});
