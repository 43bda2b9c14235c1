/** The one form that equal objects have. */
import { expect } from 'chai';
import fc from 'fast-check';
import { sortedSchedules } from '../../src/apply/normal.js';
import type { ScheduleObject } from '../../src/apply/objects.js';

describe('schedules of an endpoint', () => {
  const schedule: fc.Arbitrary<ScheduleObject> = fc.record({
    cron: fc.constantFrom('@daily', '* * * * *'),
    timezone: fc.constant('UTC'),
    enabled: fc.boolean(),
    method: fc.constantFrom('GET', 'POST'),
    path: fc.constantFrom('/', '/a', '/a"'),
    headers: fc.constantFrom({}, { A: '1' }, { A: '1', B: '2' }, { B: '2', A: '1' }),
    body: fc.constantFrom(null, 'YQ==', 'YWI=', 'Yg=='),
  });
  /** Plans that are stored have this order. */
  const textOf = ({ cron, timezone, enabled, method, path, headers, body }: ScheduleObject) =>
    JSON.stringify([cron, timezone, enabled, method, path, Object.entries(headers).sort(), body]);

  it('are in the order of their JSON, in which the body is the last, whatever order they had', () =>
    fc.assert(
      fc.asyncProperty(fc.array(schedule, { maxLength: 20 }), async (schedules) => {
        const texts = schedules.map(textOf).sort((left, right) => (left < right ? -1 : 1));
        expect((await sortedSchedules(schedules)).map(textOf)).to.deep.equal(texts);
      }),
    ));
});
