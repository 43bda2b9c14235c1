import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect } from 'chai';
import { KeyedQueue } from '../../src/util/keyed-queue.js';

describe('keyed queue', () => {
  it('runs tasks with the same key in order, even after failures, and others concurrently', async () => {
    const queue = new KeyedQueue();
    const said: string[] = [];
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const first = queue.run('a', async () => {
      said.push('first begins');
      await held;
      said.push('first fails');
      throw new Error('on purpose');
    });
    const second = queue.run('a', async () => said.push('second'));
    const third = queue.run('a', async () => said.push('third'));
    expect(await queue.run('b', async () => 'its own result')).to.equal('its own result');
    await nextTurn();
    expect(said).to.deep.equal(['first begins']);
    release();
    const outcomes = await Promise.allSettled([first, second, third]);
    expect(outcomes.map(({ status }) => status)).to.deep.equal(['rejected', 'fulfilled', 'fulfilled']);
    expect(said).to.deep.equal(['first begins', 'first fails', 'second', 'third']);
    // No earlier task is pending.
    await queue.run('a', async () => said.push('fourth'));
    expect(said.at(-1)).to.equal('fourth');
  });
});
