import { expect } from 'chai';
import { BoundedSemaphore } from '../../src/actors/bounded-semaphore.js';
import { ServiceError } from '../../src/actors/service-error.js';

describe('bounded semaphore', () => {
  const kindOf = (acquiring: Promise<void>) =>
    acquiring.then(
      () => 'acquired',
      (thrown: unknown) => (thrown instanceof ServiceError ? thrown.kind : 'unknown'),
    );

  it('a semaphore admits callers up to its capacity, and the others in order', async () => {
    const semaphore = new BoundedSemaphore(2, 10);
    const acquired: number[] = [];
    for (let i = 0; i < 5; i++) void semaphore.acquire(60_000).then(() => acquired.push(i));
    await Promise.resolve();
    expect({ inUse: semaphore.inUse, waiting: semaphore.waiting, acquired }).to.deep.equal({
      inUse: 2,
      waiting: 3,
      acquired: [0, 1],
    });
    for (let left = 0; left < 5; left++) {
      semaphore.release();
      await Promise.resolve();
    }
    expect(acquired).to.deep.equal([0, 1, 2, 3, 4]);
    expect({ inUse: semaphore.inUse, waiting: semaphore.waiting }).to.deep.equal({ inUse: 0, waiting: 0 });
  });

  it('a semaphore refuses callers when its queue is full, and drops those that waited too long', async () => {
    const semaphore = new BoundedSemaphore(1, 1);
    await semaphore.acquire(1);
    const late = kindOf(semaphore.acquire(1));
    expect(await kindOf(semaphore.acquire(60_000))).to.equal('busy');
    expect(await late).to.equal('deadline');
    expect(semaphore.waiting).to.equal(0);
    // A permit is not given to one that has timed out.
    const next = kindOf(semaphore.acquire(60_000));
    semaphore.release();
    expect(await next).to.equal('acquired');
    expect(semaphore.inUse).to.equal(1);
  });
});
