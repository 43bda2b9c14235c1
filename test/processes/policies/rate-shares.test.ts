/** Limits of rates that gateways count by themselves: each lets its share through; with real processes. */
import { expect } from 'chai';
import { eventually } from '../../support/eventually.js';
import { flood } from '../../support/flood.js';
import { call } from '../../support/http.js';
import { type PolicyStack, startPolicyStack } from '../../support/policies.js';
import { freePort } from '../../support/ports.js';
import { frontOf, isRunning } from '../../support/process-state.js';
import type { TestProcess } from '../../support/processes.js';

/** Two gateways cannot have the same part of it. */
const LIMIT = 101;
const RULE = { requests: LIMIT, window_seconds: 3600, by: 'address' };

describe('the policy rate_limit without Redis', function () {
  this.timeout(180_000);
  let one: PolicyStack;
  let second: TestProcess | undefined;
  let first: string;
  let other: string;
  before(async () => {
    one = await startPolicyStack({ TRUSTED_PROXIES: '127.0.0.1' });
    first = one.stack.gatewayUrl;
    other = `http://127.0.0.1:${await freePort()}`;
    await one.set(one.endpoint, { rate_limit: RULE });
  });
  after(async () => {
    await second?.end();
    await one?.close();
  });
  const startSecond = async () => {
    second = one.stack.launch('gateway', { GATEWAY_PORT: new URL(other).port });
    await second.ready;
  };
  const headersOf = (address: string) => ({ host: one.host, 'x-forwarded-for': address });
  const admitted = async (targets: string[], address: string) =>
    (await flood({ targets, path: '/shown', headers: headersOf(address), requests: LIMIT + 50 })).map(
      ({ 200: count }) => count ?? 0,
    );
  /** What each gateway lets a caller send that it has not seen. */
  let callers = 0;
  const shares = async (targets: readonly string[]) => {
    const found = [];
    for (const target of targets) {
      const address = `2001:db8:0:${(++callers).toString(16)}::1`;
      const { headers } = await call(`${target}/shown`, { headers: headersOf(address) });
      expect(headers['ratelimit-policy']).to.equal(`"address-3600s";q=${LIMIT};w=3600`);
      found.push(Number(/;r=(\d+);/.exec(String(headers['ratelimit']))?.[1]) + 1);
    }
    return found.sort((left, right) => left - right);
  };
  const areShared = (targets: readonly string[], expected: readonly number[]) =>
    eventually(async () => expect(await shares(targets)).to.deep.equal(expected));

  it('admits the whole rate limit where one gateway is alive', async () => {
    expect(await admitted([first], '198.51.100.1')).to.deep.equal([LIMIT]);
  });

  it('shares a rate limit between two gateways without a remainder, and says what is left of a share', async () => {
    await startSecond();
    await areShared([first, other], [50, 51]);
    expect((await admitted([first, other], '198.51.100.2')).sort()).to.deep.equal([50, 51]);
  });

  it('admits at least one request of each caller on each gateway that shares a rate limit', async () => {
    await one.set(one.endpoint, { rate_limit: { requests: 1, window_seconds: 3600, by: 'header:x-tenant' } });
    const statuses = await flood({
      targets: [first, other],
      path: '/shown',
      headers: { host: one.host, 'x-tenant': 'one' },
      requests: 5,
    });
    expect(statuses).to.deep.equal(Array(2).fill({ 200: 1, 429: 4 }));
    await one.set(one.endpoint, { rate_limit: RULE });
  });

  it('keeps the share of a rate limit when a front is replaced', async () => {
    const pid = one.stack.processes.get('gateway')?.pid ?? 0;
    const old = frontOf(pid) ?? expect.fail('no front');
    process.kill(pid, 'SIGUSR2');
    await eventually(() => expect(isRunning(old)).to.equal(false), 90_000);
    expect(await shares([first, other])).to.deep.equal([50, 51]);
  });

  it('admits the rest of a rate limit when the other gateway ends, without counting anew', async () => {
    const [before = 0] = await admitted([first], '198.51.100.3');
    expect(before).to.be.oneOf([50, 51]);
    await second?.end();
    await areShared([first], [LIMIT]);
    expect(await admitted([first], '198.51.100.3')).to.deep.equal([LIMIT - before]);
  });

  it('shares a rate limit again with a gateway that is back, until that one has been lost for a while', async () => {
    await startSecond();
    await areShared([first, other], [50, 51]);
    await second?.end('SIGKILL');
    await areShared([first], [LIMIT]);
  });
});
