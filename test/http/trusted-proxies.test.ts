/** The address of the client as a handler sees it, with and without proxies that the gateway trusts. */
import { expect } from 'chai';
import { ANYTHING } from '../support/handler-sources.js';
import { call } from '../support/http.js';
import { type Stack, startStack } from '../support/processes.js';

type Headers = Readonly<Record<string, string | string[]>>;

describe('client_ip', () => {
  let stack: Stack;
  before(async () => {
    stack = await startStack({ processes: ['web', 'worker', 'gateway'] });
    await stack.deploy({ path: '/any', code: ANYTHING });
  });
  after(() => stack.close());

  const seen = async (headers: Headers) => {
    const { status, text } = await call(`${stack.gatewayUrl}/any`, { headers });
    expect(status, text).to.equal(200);
    return JSON.parse(text) as { client_ip: string; headers: Record<string, string> };
  };
  const clientIp = async (headers: Headers) => (await seen(headers)).client_ip;
  const restart = async (proxies: string) => {
    await stack.processes.get('gateway')?.end();
    await stack.start('gateway', { TRUSTED_PROXIES: proxies });
  };

  describe('of a peer that is not trusted', () => {
    for (const proxies of ['', '10.0.0.0/8, 127.0.0.2, ::1']) {
      it(`is the peer, whatever its headers say (TRUSTED_PROXIES=${proxies})`, async () => {
        await restart(proxies);
        for (const headers of [
          {},
          { 'x-forwarded-for': '192.0.2.1' },
          { forwarded: 'for=192.0.2.1' },
          { 'x-forwarded-for': '192.0.2.1', forwarded: 'for=192.0.2.1' },
        ])
          expect(await clientIp(headers), JSON.stringify(headers)).to.equal('127.0.0.1');
      });
    }
  });

  describe('of a trusted proxy', () => {
    before(() => restart('127.0.0.0/8,10.0.0.0/8,2001:db8:1::/48'));

    it('is the proxy when it says nothing', async () => {
      expect(await clientIp({})).to.equal('127.0.0.1');
    });

    for (const [header, of] of [
      ['x-forwarded-for', (...addresses: string[]) => addresses.join(', ')],
      [
        'forwarded',
        (...addresses: string[]) => addresses.map((address) => `for="${bracketed(address)}"`).join(', '),
      ],
    ] as const) {
      it(`is the last address in ${header} that is not that of a trusted proxy`, async () => {
        for (const [addresses, client] of [
          [['192.0.2.1'], '192.0.2.1'],
          [['192.0.2.1', '10.1.2.3'], '192.0.2.1'],
          // The first one was sent by the client.
          [['198.51.100.1', '192.0.2.1'], '192.0.2.1'],
          [['10.9.9.9', '192.0.2.1', '10.1.2.3', '127.0.0.7'], '192.0.2.1'],
          [['2001:db8:2::1', '2001:db8:1::1'], '2001:db8:2::1'],
          // All are proxies: the first of them.
          [['10.1.2.3', '10.1.2.4'], '10.1.2.3'],
        ] as const)
          expect(await clientIp({ [header]: of(...addresses) }), addresses.join()).to.equal(client);
      });
    }

    it('is the same from several headers of the name', async () => {
      expect(await clientIp({ 'x-forwarded-for': ['198.51.100.1', '192.0.2.1, 10.0.0.1'] })).to.equal(
        '192.0.2.1',
      );
    });

    it('is that of X-Forwarded-For where both are there', async () => {
      expect(await clientIp({ 'x-forwarded-for': '192.0.2.1', forwarded: 'for=192.0.2.2' })).to.equal(
        '192.0.2.1',
      );
    });

    it('leaves the headers to the handler as they are', async () => {
      const { headers } = await seen({ 'x-forwarded-for': 'anything, 192.0.2.1', forwarded: 'for=unknown' });
      expect(headers).to.include({ 'x-forwarded-for': 'anything, 192.0.2.1', forwarded: 'for=unknown' });
    });
  });
});

function bracketed(address: string): string {
  return address.includes(':') ? `[${address}]` : address;
}
