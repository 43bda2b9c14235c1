import { expect } from 'chai';
import { CoalescingTask } from '../../src/util/coalescing-task.js';

describe('coalescing task', () => {
  it('runs a task once more for all requests that come during a run', async () => {
    let runs = 0;
    let finish: () => void = () => undefined;
    const task = new CoalescingTask(async () => {
      const run = ++runs;
      if (run === 1) {
        await new Promise<void>((resolve) => {
          finish = resolve;
        });
      }
      return run;
    });
    const requests = [task.run(), task.run(), task.run()];
    expect(runs).to.equal(1);
    finish();
    expect(await Promise.all(requests)).to.deep.equal([1, 2, 2]);
    expect(runs).to.equal(2);
  });

  it('loses no request that comes at the moment when a run of a task ends', async () => {
    let requested = 0;
    let done = 0;
    let concurrent = 0;
    const task = new CoalescingTask(async () => {
      expect(++concurrent).to.equal(1);
      await Promise.resolve();
      done = requested;
      concurrent--;
    });
    for (let i = 1; i <= 1_000; i++) {
      requested = i;
      const request = task.run();
      // Now and then, exactly when the previous run has ended.
      for (let turn = 0; turn < i % 7; turn++) await Promise.resolve();
      if (i % 3 === 0) await request;
    }
    await task.idle();
    expect(done).to.equal(1_000);
  });

  it('runs a task again after a run that failed', async () => {
    let runs = 0;
    const task = new CoalescingTask(async () => {
      if (runs++ === 0) throw new Error('once');
    });
    const failure = await task.run().catch((thrown: unknown) => thrown);
    expect(failure).to.have.property('message', 'once');
    await task.run();
    expect(runs).to.equal(2);
  });

  it('runs a task again for a request that comes during a run that fails', async () => {
    let runs = 0;
    const task = new CoalescingTask(async () => {
      if (runs++ === 0) throw new Error('once');
    });
    const first = task.run().catch((thrown: unknown) => thrown);
    await task.run();
    expect(runs).to.equal(2);
    expect(await first).to.have.property('message', 'once');
  });
});
