/** Processes are killed in the middle of a deployment: it is finished or undone, never half. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { eventually } from '../../support/eventually.js';
import { numbered, slowToCompile } from '../../support/handler-sources.js';
import { call } from '../../support/http.js';
import { must, type Stack, startStack } from '../../support/processes.js';

interface Endpoint {
  readonly status: string;
  readonly code: string;
  readonly running_version: number | null;
  readonly latest_version: number;
  readonly pid: number | null;
  readonly updated_at: string;
}
interface Deployment {
  readonly kind: string;
  readonly outcome: string;
}

/** A handler that takes a while to become ready. */
const slowToStart = (number: number) =>
  numbered(number).replace(
    'handler_loop!(handle);',
    `mod served { use super::*; handler_loop!(handle); pub fn serve() { main() } }
     fn main() { std::thread::sleep(std::time::Duration::from_secs(2)); served::serve() }`,
  );

describe('a deployment', function () {
  this.timeout(180_000);
  let stack: Stack;
  let id: string;
  before(async () => {
    stack = await startStack({ processes: ['web', 'worker', 'gateway'] });
    id = await stack.deploy({ path: '/deployed', method: 'POST', code: numbered(1) });
  });
  after(() => stack?.close());

  const endpoint = async () => (await must(stack.api.get(`/api/endpoints/${id}`))) as Endpoint;
  const deployments = async () =>
    (await must(stack.api.get(`/api/endpoints/${id}/deployments`))) as Deployment[];
  const versions = async () =>
    ((await must(stack.api.get(`/api/endpoints/${id}/versions`))) as { version: number }[]).length;
  const answer = async () => (await call(`${stack.gatewayUrl}/deployed`, { method: 'POST' })).text.trim();
  const deploy = (code: string) =>
    stack.api.post(`/api/endpoints/${id}/deploy`, { code }).then(
      ({ status }) => status,
      () => 'cut',
    );

  let number = 10;
  for (const victim of ['web', 'worker', 'gateway'] as const) {
    for (const moment of ['compiles', 'starts'] as const) {
      it(`a deployment is finished or undone when ${victim} is killed while its handler ${moment}`, async () => {
        number++;
        const before = await endpoint();
        const [versionsBefore, answerBefore] = [await versions(), await answer()];
        const count = (await deployments()).length;
        const code = moment === 'compiles' ? slowToCompile(2_000_000, number) : slowToStart(number);
        const deploying = deploy(code);
        if (moment === 'compiles') await delay(300);
        else
          await eventually(
            async () => expect((await deployments())[0]).to.include({ outcome: 'pending' }),
            60_000,
          );
        const process = stack.processes.get(victim);
        if (victim !== 'web') process?.logged.expectErrors(/./);
        await process?.end('SIGKILL');
        await stack.start(victim);
        await deploying;
        await eventually(async () => {
          for (const { outcome } of await deployments()) expect(outcome).not.to.equal('pending');
        }, 60_000);
        await eventually(async () => expect((await endpoint()).running_version).to.be.a('number'), 60_000);
        const after = await endpoint();
        expect(after.status).to.equal('running');
        if (after.code === code) {
          expect(after.latest_version).to.equal(before.latest_version + 1);
          expect(after.running_version).to.equal(after.latest_version);
          expect((await deployments())[0]).to.include({ kind: 'deploy', outcome: 'succeeded' });
          expect(await answer()).not.to.equal(answerBefore);
        } else {
          expect({ ...after, pid: 0 }).to.deep.equal({ ...before, pid: 0 });
          expect(await versions()).to.equal(versionsBefore);
          expect((await deployments()).slice(1).length).to.be.within(count - 1, count);
          expect(await answer()).to.equal(answerBefore);
        }
      });
    }
  }
});
