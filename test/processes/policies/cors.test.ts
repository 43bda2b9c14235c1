/** Pages of other origins: preflights, and the headers of answers; with real processes. */
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

  it('answers preflights for the methods of the path, before authentication, without waking anything', async () => {
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

  it('refuses preflights of other origins', async () => {
    for (const origin of [
      'https://app.example.evil.example',
      'http://app.example',
      'https://app.example:444',
      'https://pages.example:8443',
      'https://.pages.example:8443',
      'https://evil.example/.pages.example:8443',
      'https://evil.example#.pages.example:8443',
      'null',
    ]) {
      const { status, headers } = await preflight(origin, 'GET');
      expect(status, origin).to.equal(403);
      expect(headers, origin).not.to.have.property('access-control-allow-origin');
    }
  });

  it('has its headers on the answers of the gateway itself', async () => {
    const { status, headers } = await one.send({ headers: { origin: PAGE } });
    expect(status).to.equal(401);
    expect(headers).to.include({
      'access-control-allow-origin': PAGE,
      'access-control-allow-credentials': 'true',
    });
    const deleted = await one.send({ method: 'DELETE', headers: { origin: PAGE } });
    expect([deleted.status, deleted.headers['access-control-allow-origin']]).to.deep.equal([405, PAGE]);
    await one.set(one.domain, { cors: { origins: [PAGE] }, body_limit: 10 });
    const large = await one.send({ method: 'POST', headers: { origin: PAGE }, body: 'x'.repeat(11) });
    expect([large.status, large.headers['access-control-allow-origin']]).to.deep.equal([413, PAGE]);
    await one.set(one.domain, { cors: { origins: [PAGE] }, timeout: 50 });
    const late = await one.send({ path: '/shown?sleep=5000', headers: { origin: PAGE } });
    expect([late.status, late.headers['access-control-allow-origin']]).to.deep.equal([504, PAGE]);
  });

  it('has its headers on the answers of handlers, instead of theirs, and none for others', async () => {
    await one.set(one.domain, { cors: { origins: [PAGE], expose: ['X-Shown'] } });
    const path = '/shown?header-Access-Control-Allow-Origin=https://evil.example';
    const { headers, rawHeaders } = await one.send({ path, headers: { origin: PAGE } });
    expect(headers).to.include({
      'access-control-allow-origin': PAGE,
      'access-control-expose-headers': 'X-Shown',
    });
    expect(rawHeaders.filter((name) => /^access-control-allow-origin$/i.test(name))).to.have.length(1);
    const other = await one.send({ path, headers: { origin: 'https://evil.example' } });
    expect(other.status).to.equal(200);
    expect(other.headers).not.to.have.property('access-control-allow-origin');
    expect(other.headers['vary']).to.equal('Origin');
  });

  it('has none for methods that it does not name, which browsers send even so', async () => {
    for (const origins of [[PAGE], ['*']]) {
      await one.set(one.domain, { cors: { origins, methods: ['GET'] } });
      const found = [];
      for (const method of ['GET', 'HEAD', 'POST']) {
        const asked = await preflight(PAGE, method);
        const { status, headers } = await one.send({ method, headers: { origin: PAGE } });
        found.push([
          asked.status,
          asked.headers['access-control-allow-methods'],
          status,
          headers['access-control-allow-origin'],
        ]);
      }
      expect(found).to.deep.equal([
        [204, 'GET, HEAD', 200, origins[0]],
        [204, 'GET, HEAD', 200, origins[0]],
        [403, undefined, 200, undefined],
      ]);
    }
  });

  it('without it, OPTIONS is a method like others', async () => {
    await one.set(one.domain, null);
    const { status, headers } = await preflight(PAGE, 'GET');
    expect(status).to.equal(405);
    expect(headers).not.to.have.property('access-control-allow-origin');
  });

  it('names in its answer only methods whose own policy lets the page use them in the same way', async () => {
    const allowed = async (origin: string, method: string) => {
      const { status, headers } = await preflight(origin, method);
      return status === 204 ? headers['access-control-allow-methods'] : status;
    };
    await one.set(one.domain, null);
    await one.set(one.endpoint, { cors: { origins: [PAGE], max_age_seconds: 600 } });
    const internal = 'https://internal.example';
    const cases: readonly (readonly [object | null, readonly unknown[]])[] = [
      [{ origins: [internal], max_age_seconds: 600 }, ['GET, HEAD', 403, 403, 'POST']],
      [
        { origins: [internal, PAGE], max_age_seconds: 600 },
        ['GET, HEAD, POST', 'GET, HEAD, POST', 403, 'POST'],
      ],
      [{ origins: ['*'], max_age_seconds: 600 }, ['GET, HEAD, POST', 'GET, HEAD, POST', 403, 'POST']],
      [{ origins: [PAGE], max_age_seconds: 600, methods: ['PUT'] }, ['GET, HEAD', 403, 403, 403]],
      [{ origins: [PAGE], max_age_seconds: 5 }, ['GET, HEAD', 'POST', 403, 403]],
      [{ origins: [PAGE], max_age_seconds: 600, credentials: true }, ['GET, HEAD', 'POST', 403, 403]],
      [{ origins: [PAGE], max_age_seconds: 600, headers: ['x-own'] }, ['GET, HEAD', 'POST', 403, 403]],
      [null, ['GET, HEAD', 405, 403, 405]],
    ];
    for (const [cors, expected] of cases) {
      await one.set(one.post, { cors });
      const answers = [];
      for (const origin of [PAGE, internal])
        for (const method of ['GET', 'POST']) answers.push(await allowed(origin, method));
      expect(answers, JSON.stringify(cors)).to.deep.equal(expected);
    }
    for (const endpoint of [one.endpoint, one.post]) await one.set(endpoint, null);
  });

  it('bears a flood of preflights: others are served meanwhile, no handler wakes, no limit is used up', async () => {
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
