/**
 * `TRUSTED_PROXIES`, from the setting to the handler. What headers of proxies say is tested in
 * `rust/front/tests/front/client_ip.rs`.
 */
import { expect } from 'chai';
import { ANYTHING } from '../support/handler-sources.js';
import { call } from '../support/http.js';
import { type Stack, startStack } from '../support/processes.js';

describe('client_ip', () => {
  let stack: Stack;
  before(async () => {
    stack = await startStack({ processes: ['web', 'worker', 'gateway'] });
    await stack.deploy({ path: '/any', code: ANYTHING });
  });
  after(() => stack.close());

  const clientIp = async (headers: Readonly<Record<string, string>>) => {
    const { status, text } = await call(`${stack.gatewayUrl}/any`, { headers });
    expect(status, text).to.equal(200);
    return (JSON.parse(text) as { client_ip: string }).client_ip;
  };

  it('gives handlers the peer as client_ip without trusted proxies, whatever its headers say', async () => {
    expect(await clientIp({ 'x-forwarded-for': '192.0.2.1', forwarded: 'for=192.0.2.1' })).to.equal(
      '127.0.0.1',
    );
  });

  it('gives handlers the last address that is not that of a trusted proxy as client_ip', async () => {
    await stack.processes.get('gateway')?.end();
    await stack.start('gateway', { TRUSTED_PROXIES: '127.0.0.0/8,10.0.0.0/8' });
    expect(await clientIp({ 'x-forwarded-for': '198.51.100.1, 192.0.2.1, 10.1.2.3' })).to.equal('192.0.2.1');
  });
});
