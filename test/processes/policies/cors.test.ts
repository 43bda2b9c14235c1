/** Pages of other origins, from the API to the client. Other cases are in `rust/front/tests/front/policies`. */
import { expect } from 'chai';
import { eventually } from '../../support/eventually.js';
import { expectData } from '../../support/expect.js';
import { outcomes, startLoad } from '../../support/load.js';
import { type PolicyStack, startPolicyStack } from '../../support/policies.js';

const PAGE = 'https://app.example';

describe('the policy cors', function () {
  this.timeout(180_000);
  let one: PolicyStack;
  before(async () => {
    one = await startPolicyStack({ GATEWAY_BODY_LIMIT_BYTES: '1000' });
  });
  after(() => one?.close());
  const preflight = (origin: string, method: string, more: Record<string, string> = {}) =>
    one.send({
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': method, ...more },
    });

  it('answers preflights with the methods of the path, before authentication', async () => {
    await one.set(one.domain, {
      cors: {
        origins: [PAGE, 'https://*.pages.example:8443'],
        headers: ['content-type', 'x-own'],
        credentials: true,
        max_age_seconds: 600,
      },
      auth: { api_key: {} },
    });
    for (const origin of [PAGE, 'https://a.pages.example:8443', 'https://a.b.pages.example:8443']) {
      const { status, headers, text } = await preflight(origin, 'POST');
      expect([status, text]).to.deep.equal([204, '']);
      expect(headers).to.include({
        'access-control-allow-origin': origin,
        'access-control-allow-methods': 'GET, HEAD, POST',
        'access-control-allow-headers': 'content-type, x-own',
        'access-control-allow-credentials': 'true',
        'access-control-max-age': '600',
      });
      expect(headers['vary']).to.match(/Origin/);
      expect(headers).not.to.have.property('content-length');
    }
    expect((await preflight(PAGE, 'DELETE')).headers['access-control-allow-methods']).to.equal(
      'GET, HEAD, POST',
    );
  });

  it('serves others during a flood of preflights, which wakes no handler and uses up no rate limit', async () => {
    const limited = { rate_limit: { requests: 1, window_seconds: 3600, by: 'address' } };
    await one.set(one.domain, { cors: { origins: [PAGE] } });
    await one.set(one.endpoint, limited);
    await one.stack.api.put(one.endpoint, { limits: { idle_ms: 1 } });
    const isAsleep = async () =>
      expectData<{ pid: number | null }>(await one.stack.api.get(one.endpoint)).pid === null;
    await eventually(async () => expect(await isAsleep()).to.equal(true));
    const answered = async () => {
      const text = await (await fetch(`${one.stack.apiUrl}/metrics`)).text();
      const of = (policy: string) =>
        Number(new RegExp(`policy_answers_total\\{policy="${policy}"\\} (\\d+)`).exec(text)?.[1] ?? 0);
      return of('preflight') + of('cors');
    };
    const before = await answered();
    const flood = await startLoad({
      targets: [one.stack.gatewayUrl],
      clients: 32,
      pauseMs: 0,
      request: (client, number) => ({
        path: '/shown',
        method: 'OPTIONS',
        headers: {
          host: one.host,
          origin: client % 2 ? PAGE : `https://${number}.evil.example`,
          'access-control-request-method': 'GET',
          'access-control-request-headers': 'x'.repeat(999),
        },
        ...(client % 2 ? { status: 204, text: '' } : { status: 403, text: /Pages of this origin/ }),
      }),
    });
    const others = await startLoad({
      targets: [one.stack.gatewayUrl],
      clients: 4,
      request: () => ({ path: '/shown', method: 'POST', headers: { host: one.host }, text: /"POST"/ }),
    });
    // Both go on at the same time.
    for (let turn = 0; turn < 5; turn++) {
      const [preflights, requests] = [flood.served(), others.served()];
      await eventually(() => {
        expect(flood.served()).to.be.greaterThan(preflights + 500);
        expect(others.served()).to.be.greaterThan(requests + 50);
      });
    }
    const [failed, lost] = [await others.stop(), await flood.stop()];
    expect([outcomes(failed), outcomes(lost)]).to.deep.equal([{}, {}]);
    await eventually(async () => expect(await answered()).to.equal(before + flood.served()));
    expect(await isAsleep()).to.equal(true);
    expect([(await one.send()).status, (await one.send()).status]).to.deep.equal([200, 429]);
  });
});
