import { expect } from 'chai';
import fc from 'fast-check';
import { cutsOf, type HourUsage } from '../../src/model/log-shares.js';

const used = (host: string | null, endpointId: string, hour: number, bytes: number): HourUsage => ({
  ...{ host, endpointId, hour, bytes },
  isOver: hour < 100,
});
const shown = (usage: readonly HourUsage[], room: number) =>
  cutsOf(usage, room).map(({ hour, parts }) => [hour, Object.fromEntries(parts)]);

describe('shares of the log', () => {
  it('takes nothing from a log that has room for all', () => {
    expect(shown([used('a', '1', 1, 60), used('b', '2', 2, 40)], 100)).to.deep.equal([]);
  });

  it('takes the oldest entries of an endpoint that has more than its share, and none of others', () => {
    const quiet = [1, 2, 3, 4].map((hour) => used('quiet', 'q', hour, 10));
    const loud = [used('loud', 'l', 3, 50), used('loud', 'l', 4, 150)];
    expect(shown([...quiet, ...loud], 140)).to.deep.equal([
      [3, { l: 1 }],
      [4, { l: 50 / 150 }],
    ]);
  });

  it('shares what a domain has by its endpoints', () => {
    const usage = [
      used('a', '1', 1, 10),
      used('a', '2', 1, 70),
      used('b', '3', 1, 20),
      used(null, '4', 2, 20),
    ];
    expect(shown(usage, 100)).to.deep.equal([[1, { 2: 20 / 70 }]]);
  });

  it('takes nothing of an hour that is not over, and nothing of others instead', () => {
    expect(shown([used('a', '1', 1, 50), used('b', '2', 100, 500)], 100)).to.deep.equal([]);
  });

  it('takes nothing of whoever has no more than an equal share, and makes room otherwise', () => {
    const usage = fc.array(
      fc.record({
        host: fc.constantFrom('a', 'b', 'c'),
        endpointId: fc.constantFrom('1', '2', '3'),
        hour: fc.integer({ min: 1, max: 9 }),
        bytes: fc.integer({ min: 1, max: 1_000 }),
        isOver: fc.constant(true),
      }),
      { minLength: 1, maxLength: 40 },
    );
    fc.assert(
      fc.property(usage, fc.integer({ min: 1, max: 10_000 }), (all, room) => {
        // Each endpoint is of one domain, and has one entry for an hour.
        const unique = new Map(
          all.map((one) => {
            const own = { ...one, endpointId: `${one.host}${one.endpointId}` };
            return [`${own.endpointId} ${own.hour}`, own];
          }),
        );
        const rows = [...unique.values()];
        const cuts = cutsOf(rows, room);
        const gone = ({ hour, endpointId, bytes }: HourUsage) =>
          bytes * (cuts.find((cut) => cut.hour === hour)?.parts.get(endpointId) ?? 0);
        const left = rows.reduce((total, row) => total + row.bytes - gone(row), 0);
        expect(left).to.be.at.most(room + rows.length);
        const hosts = new Set(rows.map(({ host }) => host));
        for (const host of hosts) {
          const own = rows.filter((row) => row.host === host);
          const bytes = own.reduce((total, row) => total + row.bytes, 0);
          if (bytes <= room / hosts.size) expect(own.map(gone).filter(Boolean)).to.deep.equal([]);
        }
      }),
    );
  });
});
