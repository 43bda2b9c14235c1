import { expect } from 'chai';
import fc from 'fast-check';
import { InFlight, MAX_IN_FLIGHT } from '../../src/gateway/in-flight.js';

describe('requests in flight', () => {
  it('behaves like a map that assigns its keys', () => {
    const step = fc.oneof(
      fc.record({ do: fc.constant('add' as const), value: fc.integer() }),
      fc.record({ do: fc.constant('delete' as const), at: fc.nat() }),
      fc.record({ do: fc.constant('take' as const), below: fc.integer() }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const real = new InFlight<{ value: number }>();
        const model = new Map<number, { value: number }>();
        for (const each of steps) {
          if (each.do === 'add') {
            const item = { value: each.value };
            const number = real.add(item);
            if (number === undefined) throw new Error('full');
            expect(model.has(number)).to.equal(false);
            model.set(number, item);
          } else if (each.do === 'delete') {
            const number = [...model.keys()][each.at % (model.size || 1)] ?? each.at;
            real.delete(number);
            model.delete(number);
          } else {
            const taken = real.takeIf(({ value }) => value < each.below);
            const expected = [...model].filter(([, { value }]) => value < each.below);
            expect(taken).to.have.same.members(expected.map(([, item]) => item));
            for (const [number] of expected) model.delete(number);
          }
          expect(real.size).to.equal(model.size);
          for (const [number, item] of model) expect(real.get(number)).to.equal(item);
        }
      }),
    );
  });

  it('does not confuse an earlier request with a later one in the same slot', () => {
    const requests = new InFlight<string>();
    const first = requests.add('first') ?? Number.NaN;
    requests.delete(first);
    const second = requests.add('second') ?? Number.NaN;
    expect(second).to.not.equal(first);
    expect(requests.get(first)).to.equal(undefined);
    requests.delete(first);
    expect(requests.get(second)).to.equal('second');
  });

  it('has 32 bit numbers, however often a slot is reused, and a capacity', () => {
    const requests = new InFlight<object>();
    const item = {};
    for (let use = 0; use < MAX_IN_FLIGHT + 10; use++) {
      const number = requests.add(item) ?? Number.NaN;
      expect(number).to.be.within(0, 0xffff_ffff);
      requests.delete(number);
    }
    for (let count = 0; count < MAX_IN_FLIGHT; count++)
      expect(requests.add(item)).to.be.within(0, 0xffff_ffff);
    expect(requests.add(item)).to.equal(undefined);
  });
});
