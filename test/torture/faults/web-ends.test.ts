/** A web process that gets SIGTERM while a request waits for a build that no worker executes at the moment. */
import { expect } from 'chai';
import type { Build } from '../../../src/store/builds.js';
import { eventually } from '../../support/eventually.js';
import { expectFailure } from '../../support/expect.js';
import { numbered } from '../../support/handler-sources.js';
import { must, startStack } from '../../support/processes.js';

describe('a web process on SIGTERM', function () {
  this.timeout(180_000);

  it('web answers on SIGTERM that a build continues, and exits with 0', async () => {
    const stack = await startStack({ processes: ['web', 'worker'] });
    const { api, processes } = stack;
    const worker = processes.get('worker')?.pid ?? 0;
    try {
      const definition = { name: 'x', path: '/x', method: 'GET', domain: '*', code: numbered(7301) };
      const { id } = (await must(api.post('/api/endpoints', definition))) as { id: string };
      process.kill(worker, 'SIGSTOP');
      const answer = api.post(`/api/endpoints/${id}/compile`);
      // It has been accepted.
      await eventually(async () => {
        expect(await must(api.get(`/api/endpoints/${id}`)))
          .to.have.property('build_id')
          .that.is.a('string');
      });
      expect(await processes.get('web')?.end()).to.deep.equal({ code: 0, signal: null });
      const response = await answer;
      expectFailure(response, 'wait_timeout', /^The build is still going on; see \/api\/builds\//);
      process.kill(worker, 'SIGCONT');
      await stack.start('web');
      const { build_id } = (response.body as { details: { build_id: string } }).details;
      await eventually(
        async () =>
          expect(((await must(api.get(`/api/builds/${build_id}`))) as Build).state).to.equal('succeeded'),
        60_000,
      );
    } finally {
      process.kill(worker, 'SIGCONT');
      await stack.close();
    }
  });
});
