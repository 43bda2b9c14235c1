/** h2spec, the conformance suite of HTTP/2, against a gateway as it runs: plain and with TLS. */
import { join } from 'node:path';
import { expect } from 'chai';
import { execa } from 'execa';
import { type Authority, startAuthority } from '../../support/authority.js';
import { eventually } from '../../support/eventually.js';
import { expectData } from '../../support/expect.js';
import { ANYTHING } from '../../support/handler-sources.js';
import { call } from '../../support/http.js';
import { freePort } from '../../support/ports.js';
import { type Stack, startStack } from '../../support/processes.js';
import { SERVER_CACHE } from '../../support/server-cache.js';
import { SECRET_KEY } from '../../support/test-services.js';

const H2SPEC = join(SERVER_CACHE, 'h2spec-v2.2.1');
const HOST = 'localhost';

/**
 * What fails without TLS, and why that is right. What is no preface of HTTP/2 there is a request of HTTP/1: it gets a
 * 400 in HTTP/1.1 before the connection is closed, which h2spec takes for a frame.
 */
const PLAIN_FAILURES = ['2: Sends invalid connection preface'];

describe('h2spec', function () {
  this.timeout(300_000);
  let stack: Stack;
  let authority: Authority;
  let tlsPort: number;

  before(async () => {
    authority = await startAuthority();
    tlsPort = await freePort();
    stack = await startStack({ env: { TLS_PORT: String(tlsPort), SECRET_KEY } });
    const domain = await stack.api.post('/api/domains', { name: HOST, host: HOST });
    const { id } = expectData<{ id: string }>(domain, 201);
    await stack.deploy({ path: '/any', domain: '*', code: ANYTHING });
    await stack.deploy({ path: '/any', method: 'POST', domain: '*', code: ANYTHING });
    expectData(await stack.api.put(`/api/domains/${id}/certificate`, await authority.issue([HOST])));
  });
  after(async () => {
    await stack?.close();
    await authority?.remove();
  });

  for (const isSecure of [false, true]) {
    it(`a gateway passes h2spec ${isSecure ? 'with TLS' : 'without TLS, but for one documented case'}`, async () => {
      const port = isSecure ? String(tlsPort) : new URL(stack.gatewayUrl).port;
      const args = ['-h', HOST, '-p', port, '-P', '/any', '-S', '-o', '5'];
      const run = () => execa(H2SPEC, isSecure ? [...args, '-t', '-k'] : args, { all: true, reject: false });
      // The certificate is in force a moment after it has been taken.
      const { all } = await eventually(async () => {
        const ran = await run();
        expect(ran.all).to.match(/\d+ tests, \d+ passed/);
        return ran;
      });
      const [, tests, passed] = /(\d+) tests, (\d+) passed/.exec(all) ?? [];
      const failed = [...(all.split('Failures:')[1] ?? '').matchAll(/× (.*)/g)].map(([, name]) => name);
      const expected = isSecure ? [] : PLAIN_FAILURES;
      expect(Number(tests), all).to.be.above(140);
      expect(failed, all).to.deep.equal(expected);
      expect(Number(passed), all).to.equal(Number(tests) - expected.length);
      expect((await call(`${stack.gatewayUrl}/any`)).status).to.equal(200);
    });
  }
});
