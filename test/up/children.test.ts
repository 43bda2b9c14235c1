/** The processes of `npm run up`. */
import { expect } from 'chai';
import { startChild } from '../../src/up/children.js';
import { eventually } from '../support/eventually.js';
import { isRunning } from '../support/process-state.js';

describe('a process of `npm run up`', () => {
  it('kills a process of `npm run up` that does not exit on SIGTERM, with its descendants', async () => {
    const child = startChild('test', 'test/support/ignores-sigterm.js', process.env, () => undefined);
    const { pid } = await child.ready;
    await child.stop(0);
    await eventually(() => expect(isRunning(Number(pid))).to.equal(false));
  });
});
