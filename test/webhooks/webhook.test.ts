/** Where webhooks go, and where not. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { isPublicAddress, PrivateAddressError } from '../../src/util/public-address.js';
import { newWebhookSecret, SECRET_PATTERN, sendWebhook } from '../../src/webhooks/webhook.js';

describe('webhooks', () => {
  let server: Server;
  let port: number;
  let requests = 0;
  before(async () => {
    server = createServer((request, response) => {
      requests++;
      if (request.url === '/elsewhere') response.writeHead(307, { Location: '/' }).end();
      else response.end('taken');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    ({ port } = server.address() as AddressInfo);
  });
  beforeEach(() => {
    requests = 0;
  });
  after(() => server.close());

  const send = (url: string, allowsPrivate: boolean) =>
    sendWebhook({ url, secret: newWebhookSecret(), id: 'one', body: '{}' }, allowsPrivate);

  it('sends webhooks to private addresses, even behind a name, only when that is allowed', async () => {
    expect(await send(`http://localhost:${port}/`, true)).to.equal(200);
    for (const host of ['localhost', '127.0.0.1', '[::ffff:127.0.0.1]']) {
      const error = await send(`http://${host}:${port}/`, false).catch((thrown: unknown) => thrown);
      expect(error).to.be.an.instanceOf(PrivateAddressError);
    }
    expect(requests).to.equal(1);
  });

  it('follows no redirect when it sends a webhook', async () => {
    expect(await send(`http://127.0.0.1:${port}/elsewhere`, true)).to.equal(307);
    expect(requests).to.equal(1);
  });

  it('fails to send a webhook when nothing listens at its address', async () => {
    const error = await send('http://127.0.0.1:1/', true).catch((thrown: unknown) => thrown);
    expect(String(error)).to.match(/ECONNREFUSED/);
  });

  it('makes secrets of webhooks that match their described pattern', () => {
    expect(newWebhookSecret()).to.match(new RegExp(SECRET_PATTERN));
  });

  it('tells public addresses of the internet from special ones', () => {
    for (const address of ['1.1.1.1', '8.8.8.8', '2606:4700:4700::1111'])
      expect(isPublicAddress(address), address).to.equal(true);
    for (const address of [
      '224.0.0.1',
      '255.255.255.255',
      '192.0.2.1',
      '::',
      'fe80::1',
      '2002:7f00:1::',
      '::127.0.0.1',
      '::7f00:1',
      '::808:808',
      'name',
    ])
      expect(isPublicAddress(address), address).to.equal(false);
  });

  it('counts no address in the networks of this machine as public', () => {
    const own = [
      { address: '203.0.114.7', cidr: '203.0.114.7/24' },
      { address: '9.9.9.9', cidr: null },
      { address: '8.4.4.8', cidr: '8.4.4.8/0' },
      { address: '2a01:4f8:1:2::1', cidr: '2a01:4f8:1:2::1/64' },
      { address: 'fe80::1', cidr: 'fe80::1/64' },
    ];
    for (const address of [
      ...['203.0.114.7', '203.0.114.200', '::ffff:203.0.114.9', '9.9.9.9', '8.4.4.8'],
      ...['2a01:4f8:1:2::1', '2a01:4f8:1:2:ffff::1'],
    ])
      expect(isPublicAddress(address, own), address).to.equal(false);
    for (const address of ['203.0.115.7', '9.9.9.10', '8.8.8.8', '2a01:4f8:1:3::1'])
      expect(isPublicAddress(address, own), address).to.equal(true);
  });
});
