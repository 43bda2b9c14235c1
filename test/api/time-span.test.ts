/** Times of queries. */
import { expect } from 'chai';
import { timeSpan } from '../../src/api/request/time-span.js';

describe('a time of a query', () => {
  const zone = process.env.TZ;
  before(() => {
    process.env.TZ = 'America/New_York';
  });
  after(() => {
    if (zone === undefined) delete process.env.TZ;
    else process.env.TZ = zone;
  });

  for (const [text, time] of [
    ['2026-11-25T10:00:00', '2026-11-25T10:00:00.000Z'],
    ['2026-11-25T10:00', '2026-11-25T10:00:00.000Z'],
    ['2026-11-25T10:00:00.25', '2026-11-25T10:00:00.250Z'],
    ['2026-11-25T10:00:00Z', '2026-11-25T10:00:00.000Z'],
    ['2026-11-25T10:00:00+02:00', '2026-11-25T08:00:00.000Z'],
    ['2026-11-25T10:00:00-02:00', '2026-11-25T12:00:00.000Z'],
  ] as const)
    it(`reads ${text} in a query as ${time}, whatever the time zone of the process`, () => {
      expect(timeSpan({ since: text }).since?.toISOString()).to.equal(time);
    });
});
