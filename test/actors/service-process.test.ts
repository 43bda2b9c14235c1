import { expect } from 'chai';
import { ServiceProcess } from '../../src/actors/service-process/service-process.js';

/** More than the arguments of a program may have. */
const TOO_LONG = 'x'.repeat(4 * 1024 * 1024);

describe('a service process that cannot be started', () => {
  it('ends once, with the reason, and refuses what it is asked', async () => {
    const ends: string[] = [];
    const started = new ServiceProcess({ id: TOO_LONG, type: 'redis' }, 64, {
      onMessage: () => undefined,
      onEnd: (reason) => ends.push(reason),
    });
    const asked = started.ask({ type: 'ping' }).then(String, String);
    await started.ended();
    started.kill('too late');
    expect(ends).to.have.length(1);
    expect(ends[0]).to.include('E2BIG');
    const askedLater = started.ask({ type: 'ping' }).then(String, String);
    for (const refused of [await asked, await askedLater])
      expect(refused).to.include('the process of the service has ended').and.include(ends[0]);
  });
});
