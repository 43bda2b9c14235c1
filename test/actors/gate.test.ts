import { expect } from 'chai';
import { Gate } from '../../src/actors/gate.js';
import { ServiceError } from '../../src/actors/service-error.js';

describe('gate', () => {
  const kindOf = (entering: Promise<void>) =>
    entering.then(
      () => 'entered',
      (thrown: unknown) => (thrown instanceof ServiceError ? thrown.kind : 'unknown'),
    );

  it('lets in as many as it holds, and the others in their order', async () => {
    const gate = new Gate(2, 10);
    const entered: number[] = [];
    for (let i = 0; i < 5; i++) void gate.enter(60_000).then(() => entered.push(i));
    await Promise.resolve();
    expect({ inside: gate.inside, waiting: gate.waiting, entered }).to.deep.equal({
      inside: 2,
      waiting: 3,
      entered: [0, 1],
    });
    for (let left = 0; left < 5; left++) {
      gate.leave();
      await Promise.resolve();
    }
    expect(entered).to.deep.equal([0, 1, 2, 3, 4]);
    expect({ inside: gate.inside, waiting: gate.waiting }).to.deep.equal({ inside: 0, waiting: 0 });
  });

  it('refuses when too many wait, and lets go of those that waited too long', async () => {
    const gate = new Gate(1, 1);
    await gate.enter(1);
    const late = kindOf(gate.enter(1));
    expect(await kindOf(gate.enter(60_000))).to.equal('busy');
    expect(await late).to.equal('deadline');
    expect(gate.waiting).to.equal(0);
    // The place of one that has gone is not given to it.
    const next = kindOf(gate.enter(60_000));
    gate.leave();
    expect(await next).to.equal('entered');
    expect(gate.inside).to.equal(1);
  });
});
