/** TLS of the gateway: certificates of domains over the API, in force without a dropped connection; real processes. */
import { Agent, request } from 'node:https';
import { text } from 'node:stream/consumers';
import type { ConnectionOptions, TLSSocket } from 'node:tls';
import { expect } from 'chai';
import { type Authority, type IssuedCertificate, startAuthority } from '../support/authority.js';
import { eventually } from '../support/eventually.js';
import { expectData, expectFailure } from '../support/expect.js';
import { ANYTHING } from '../support/handler-sources.js';
import { handshake } from '../support/handshake.js';
import { call } from '../support/http.js';
import { freePort } from '../support/ports.js';
import { frontOf } from '../support/process-state.js';
import { type Stack, startStack } from '../support/processes.js';
import { SOCKETS } from '../support/streaming-sources.js';
import { SECRET_KEY } from '../support/test-services.js';
import { openSocket, refusedSocket } from '../support/websocket.js';

const HOST = 'shop.example';
const OTHER = 'other.shops.example';
const YEAR = '31536000';

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

describe('TLS of the gateway', function () {
  this.timeout(120_000);
  let stack: Stack;
  let authority: Authority;
  let port: number;
  const domains: Record<string, string> = {};
  let first: IssuedCertificate;

  before(async () => {
    authority = await startAuthority();
    port = await freePort();
    const env = { TLS_PORT: String(port), HSTS_SECONDS: YEAR, SECRET_KEY, TRUSTED_PROXIES: '127.0.0.3' };
    stack = await startStack({ env });
    for (const host of [HOST, OTHER]) {
      const domain = expectData<{ id: string }>(
        await stack.api.post('/api/domains', { name: host, host }),
        201,
      );
      domains[host] = domain.id;
    }
    await stack.deploy({ path: '/any', domain: '*', code: ANYTHING });
    await stack.deploy({ path: '/any', method: 'POST', domain: '*', code: ANYTHING });
    first = await authority.issue([HOST]);
  });
  after(async () => {
    await stack?.close();
    await authority?.remove();
  });

  const path = (host = HOST) => `/api/domains/${domains[host]}/certificate`;
  const put = (certificate: object, host = HOST) => stack.api.put(path(host), certificate);
  /** @throws when the handshake fails, or the certificate is not for the host */
  const get = (target: string, host = HOST, agent?: Agent, body?: string): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const options = { host: '127.0.0.1', port, servername: host, ca: authority.root, path: target };
      const sent = request(
        {
          ...options,
          method: body === undefined ? 'GET' : 'POST',
          headers: { host },
          agent: agent ?? false,
        },
        (answer) => {
          void text(answer).then((received) =>
            resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: received }),
          );
        },
      );
      sent.on('error', reject).end(body);
    });
  const handshakeWith = (options: ConnectionOptions = {}) =>
    handshake(port, HOST, { ca: authority.root, ...options });
  const rejected = async (promise: Promise<unknown>): Promise<string> => {
    const how = await promise.then(
      () => 'not rejected',
      (error: NodeJS.ErrnoException) => `${error.code} ${error.message}`,
    );
    return how;
  };
  const fingerprint = async () => {
    const socket = await handshakeWith();
    const { fingerprint256 } = socket.getPeerCertificate();
    socket.destroy();
    return fingerprint256.replaceAll(':', '').toLowerCase();
  };

  it('refuses TLS handshakes for hosts without a certificate', async () => {
    expect(await rejected(get('/any'))).to.match(/handshake|alert|ECONNRESET/i);
    expectFailure(await stack.api.get(path()), 'not_found');
    expect(expectData(await stack.api.get(`/api/domains/${domains[HOST]}`))).to.include({
      certificate_expires_at: null,
    });
  });

  it('serves a host with its certificate, and shows the certificate over the API, never its key', async () => {
    const saved = expectData<Record<string, unknown>>(await put(first));
    expect(saved).to.deep.include({ names: [HOST], issuer: 'Test Authority' });
    const shown = await stack.api.get(path());
    expect(expectData(shown)).to.deep.equal(saved);
    expect(JSON.stringify(shown.body)).not.to.include('PRIVATE KEY');
    const domain = expectData<object>(await stack.api.get(`/api/domains/${domains[HOST]}`));
    expect(domain).to.include({ certificate_expires_at: saved['expires_at'] });
    await eventually(async () => expect((await get('/any')).status).to.equal(200));
    expect(await fingerprint()).to.equal(saved['fingerprint']);
    const { headers, body } = await get('/any');
    expect(headers['strict-transport-security']).to.equal(`max-age=${YEAR}`);
    expect(JSON.parse(body)).to.deep.include({ path: '/any' });
  });

  it('serves TLS 1.2 and 1.3 with HTTP/2 and HTTP/1.1, and nothing older', async () => {
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
      const socket = await handshakeWith({
        minVersion: version,
        maxVersion: version,
        ALPNProtocols: ['http/1.1'],
      });
      expect([socket.getProtocol(), socket.alpnProtocol]).to.deep.equal([version, 'http/1.1']);
      socket.destroy();
    }
    const newer = await handshakeWith({ ALPNProtocols: ['http/1.1', 'h2'] });
    expect(newer.alpnProtocol).to.equal('h2');
    newer.destroy();
    expect(await rejected(handshakeWith({ ALPNProtocols: ['spdy/3'] }))).to.match(/alert|ECONNRESET/i);
    const old = { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const;
    expect(await rejected(handshakeWith(old))).to.match(/protocol version|unsupported|alert/i);
    const weak = { maxVersion: 'TLSv1.2', ciphers: 'AES128-SHA:AES256-SHA:ECDHE-RSA-AES128-SHA' } as const;
    expect(await rejected(handshakeWith(weak))).to.match(/handshake failure|alert/i);
  });

  it('passes a body of 3 MiB over TLS in both directions', async () => {
    const body = 'x'.repeat(3 * 1024 * 1024);
    const answer = await get('/any?do=echo', HOST, undefined, body);
    expect(answer.status).to.equal(200);
    expect(answer.body === body).to.equal(true);
  });

  it('uses a new certificate for new connections, and still serves clients that keep a connection', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    expect((await get('/any', HOST, agent)).status).to.equal(200);
    const second = await authority.issue([HOST, `*.${HOST}`], {
      key: ['-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048'],
    });
    const saved = expectData<{ fingerprint: string }>(await put(second));
    await eventually(async () => expect(await fingerprint()).to.equal(saved.fingerprint));
    const kept = await get('/any', HOST, agent);
    expect(kept.status).to.equal(200);
    agent.destroy();
  });

  it('chooses the certificate of the host by SNI, and refuses handshakes without a host name', async () => {
    expectData(await put(await authority.issue(['*.shops.example']), OTHER));
    await eventually(async () => expect((await get('/any', OTHER)).status).to.equal(200));
    expect((await get('/any', HOST)).status).to.equal(200);
    // Without a name, and by an address, there is no certificate that would be right.
    expect(await rejected(handshakeWith({ servername: '' }))).to.match(/alert|handshake|ECONNRESET/i);
  });

  it('serves TLS again when the front of the gateway is killed or replaced', async () => {
    const gateway = stack.processes.get('gateway');
    gateway?.logged.expectErrors(/front exited, starting another/);
    const killed = frontOf(gateway?.pid ?? 0);
    process.kill(killed ?? 0, 'SIGKILL');
    await eventually(async () => expect((await get('/any')).status).to.equal(200));
    process.kill(gateway?.pid ?? 0, 'SIGUSR2');
    await eventually(() => expect(frontOf(gateway?.pid ?? 0)).not.to.be.oneOf([killed, undefined]));
    await eventually(async () => expect((await get('/any')).status).to.equal(200));
  });

  it('refuses a certificate or key that would not work, and changes nothing', async () => {
    const before = expectData(await stack.api.get(path()));
    const refused = async (certificate: object, message: RegExp) =>
      expectFailure(await put(certificate), 'invalid_input', message);
    const [wrongHost, expired] = [
      await authority.issue(['elsewhere.example']),
      await authority.issue([HOST], { days: -1 }),
    ];
    await refused({}, /body\.certificate/);
    await refused({ ...first, certificate: 'no PEM' }, /body\.certificate: has no "-----BEGIN CERTIFICATE/);
    await refused({ ...first, private_key: 'no PEM' }, /body\.private_key: cannot be read/);
    await refused({ ...first, private_key: wrongHost.private_key }, /is not the key of the/);
    await refused(wrongHost, /is for elsewhere\.example, and not for shop\.example/);
    await refused(expired, /body\.certificate: has expired/);
    const backwards = first.certificate.split(/(?<=-----END CERTIFICATE-----\n)/).toReversed();
    await refused({ ...first, certificate: backwards.join('') }, /is not the key|is for no host/);
    const [own = ''] = first.certificate.split(/(?<=-----END CERTIFICATE-----\n)/);
    const strange = { ...first, certificate: `${own}${wrongHost.certificate}` };
    await refused(strange, /its certificate 1 is not issued by its certificate 2/);
    const weak = await authority.issue([HOST], {
      key: ['-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:1024'],
    });
    await refused(weak, /body\.private_key: must be RSA of 2048 bits or more/);
    expect(expectData(await stack.api.get(path()))).to.deep.equal(before);
    const text = JSON.stringify(await put({ ...first, private_key: 'my secret text' }));
    expect(text).not.to.include('my secret text');
  });

  it('shows the expiry of a certificate in the metrics', async () => {
    const { expires_at } = expectData<{ expires_at: string }>(await stack.api.get(path()));
    const { body } = await stack.api.get('/metrics');
    const [, seconds] =
      /^edge_gateway_certificate_expiry_timestamp_seconds\{[^}]*host="shop\.example"[^}]*\} (\S+)$/m.exec(
        String(body),
      ) ?? [];
    expect(Number(seconds) * 1000).to.equal(Date.parse(expires_at));
  });

  it('refuses TLS handshakes for a renamed host that its certificate is not for', async () => {
    expectData(await put(await authority.issue([OTHER]), OTHER));
    expectData(await stack.api.put(`/api/domains/${domains[OTHER]}`, { host: 'renamed.example' }));
    // When the gateway knows.
    await eventually(async () => expect(await rejected(get('/any', OTHER))).to.match(/alert|handshake/i));
    expect(await rejected(get('/any', 'renamed.example'))).to.match(/alert|handshake/i);
    expectData(await stack.api.put(`/api/domains/${domains[OTHER]}`, { host: OTHER }));
    await eventually(async () => expect((await get('/any', OTHER)).status).to.equal(200));
  });

  it('refuses TLS handshakes for a host whose certificate or domain is deleted', async () => {
    expectData(await stack.api.delete(path(OTHER)));
    expectFailure(await stack.api.delete(path(OTHER)), 'not_found');
    const ends = () =>
      eventually(async () => expect(await rejected(get('/any', OTHER))).to.match(/alert|handshake/i), 10_000);
    await ends();
    expectData(await put(await authority.issue([OTHER]), OTHER));
    await eventually(async () => expect((await get('/any', OTHER)).status).to.equal(200));
    expectData(await stack.api.delete(`/api/domains/${domains[OTHER]}`));
    await ends();
    expect((await get('/any', HOST)).status).to.equal(200);
  });

  it('resumes TLS sessions, but none with a certificate that has been replaced or deleted', async () => {
    const resumed = async (session: Buffer): Promise<boolean> => {
      const socket = await handshakeWith({ session });
      const isReused = socket.isSessionReused();
      socket.destroy();
      return isReused;
    };
    const session = await sessionOf(await handshakeWith());
    expect(await resumed(session), 'while it is the same').to.equal(true);
    const before = await fingerprint();
    expectData(await put(await authority.issue([HOST])));
    await eventually(async () => expect(await fingerprint()).not.to.equal(before));
    expect(await resumed(session), 'once it is another').to.equal(false);
    const last = await sessionOf(await handshakeWith());
    expectData(await stack.api.delete(path()));
    await eventually(async () => expect(await rejected(get('/any'))).to.match(/alert|handshake/i));
    expect(await rejected(handshakeWith({ session: last })), 'once there is none').to.match(
      /alert|handshake/i,
    );
    expectData(await put(first));
    await eventually(async () => expect((await get('/any')).status).to.equal(200));
  });

  it('closes TLS handshakes that take too long, and serves others meanwhile', async () => {
    await stack.processes.get('gateway')?.end('SIGTERM');
    await stack.start('gateway', { HTTP_HEAD_TIMEOUT_MS: '500' });
    const { createConnection } = await import('node:net');
    const slow = createConnection({ host: '127.0.0.1', port });
    const closed = new Promise((resolve) => slow.on('close', resolve));
    slow.resume().write(Buffer.from([22, 3, 1]));
    await eventually(async () => expect((await get('/any')).status).to.equal(200));
    await closed;
    await stack.processes.get('gateway')?.end('SIGTERM');
    await stack.start('gateway');
  });

  it('carries WebSockets over TLS, and refuses those of pages of another origin', async () => {
    await stack.deploy({ path: '/socket', domain: '*', code: SOCKETS });
    const options = {
      ca: authority.root,
      servername: HOST,
      headers: { host: HOST },
      origin: `https://${HOST}`,
    };
    const { socket, messages, has, closed } = await openSocket(`https://127.0.0.1:${port}/socket`, options);
    const large = 'x'.repeat(1024 * 1024);
    for (const message of ['hello', large]) socket.send(message);
    await has(2);
    expect(messages).to.deep.equal(['hello', large]);
    socket.close(1000, 'bye');
    expect(await closed).to.deep.equal({ code: 1000, reason: 'bye' });
    const foreign = { ...options, origin: `http://${HOST}` };
    expect((await refusedSocket(`https://127.0.0.1:${port}/socket`, foreign)).status).to.equal(403);
  });

  it('redirects requests without TLS with HTTP_REDIRECT, but not those a proxy received over TLS', async () => {
    await stack.processes.get('gateway')?.end('SIGTERM');
    await stack.start('gateway', { HTTP_REDIRECT: 'true', TLS_PUBLIC_PORT: '443' });
    const headers = { host: HOST };
    const answer = await call(`${stack.gatewayUrl}/any?a=b%20c`, { headers });
    expect(answer.status).to.equal(308);
    expect(answer.headers['location']).to.equal(`https://${HOST}/any?a=b%20c`);
    expect(answer.headers).not.to.have.property('strict-transport-security');
    await eventually(async () => expect((await get('/any')).status).to.equal(200));
    const forwarded = { ...headers, 'x-forwarded-for': '203.0.113.7', 'x-forwarded-proto': 'https' };
    const stranger = await call(`${stack.gatewayUrl}/any`, { headers: forwarded });
    expect(stranger.status, 'of a stranger').to.equal(308);
    const proxied = await call(`${stack.gatewayUrl}/any`, { headers: forwarded, localAddress: '127.0.0.3' });
    expect(proxied.status, 'of a proxy').to.equal(200);
  });

  it('warns when a certificate is set while TLS_PORT is not set', async () => {
    await stack.processes.get('web')?.end('SIGTERM');
    await stack.start('web', { TLS_PORT: '' });
    expect((await put(first)).body)
      .to.have.nested.property('warnings[0]')
      .that.matches(/set TLS_PORT/);
  });
});

/** What a client keeps of a connection to resume it in another; TLS 1.3 sends it after the handshake. */
function sessionOf(socket: TLSSocket): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    socket.on('error', reject);
    socket.resume().once('session', (session: Buffer) => {
      socket.destroy();
      resolve(session);
    });
  });
}
