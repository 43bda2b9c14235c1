/** Certificates by ACME, from a real ACME server (Pebble) to a handshake with a client; real processes. */
import { connect, type TLSSocket } from 'node:tls';
import { expect } from 'chai';
import { eventually } from '../support/eventually.js';
import { expectData } from '../support/expect.js';
import { call } from '../support/http.js';
import { type Pebble, preparePebble } from '../support/pebble.js';
import { freePort } from '../support/ports.js';
import { type Stack, startStack } from '../support/processes.js';
import { SECRET_KEY } from '../support/test-services.js';

/** An order takes seconds, and the first pause after one that has failed is half a minute. */
const LIMIT_MS = 150_000;
const HOST = 'shop.example';

interface DomainState {
  readonly id: string;
  readonly certificate_expires_at: string | null;
  readonly certificate_order: {
    readonly state: string;
    readonly error: string | null;
    readonly tried_at: string | null;
    readonly next_try_at: string | null;
  } | null;
}

describe('certificates by ACME', function () {
  this.timeout(300_000);
  let stack: Stack;
  let pebble: Pebble;
  let tlsPort: number;
  let ports: { http: number; tls: number };

  before(async () => {
    pebble = await preparePebble();
    tlsPort = await freePort();
    stack = await startStack({
      env: {
        ...{ TLS_PORT: String(tlsPort), SECRET_KEY, HTTP_REDIRECT: 'true' },
        ...{ ACME_DIRECTORY_URL: pebble.directory, ACME_EMAIL: 'ada@example.com' },
        NODE_EXTRA_CA_CERTS: pebble.caFile,
      },
      processes: ['web', 'worker', 'gateway'],
    });
    ports = { http: Number(new URL(stack.gatewayUrl).port), tls: tlsPort };
    await pebble.start(ports);
  });
  after(async () => {
    await stack?.close();
    await pebble?.remove();
  });

  const addDomain = async (host: string): Promise<string> =>
    expectData<DomainState>(await stack.api.post('/api/domains', { name: host, host }), 201).id;
  const domain = async (id: string): Promise<DomainState> =>
    expectData<DomainState>(await stack.api.get(`/api/domains/${id}`));
  const certificate = async (id: string) =>
    expectData<{ ordered_from: string | null; fingerprint: string; names: string[] }>(
      await stack.api.get(`/api/domains/${id}/certificate`),
    );
  const reaches = (id: string, state: string): Promise<DomainState> =>
    eventually(async () => {
      const found = await domain(id);
      expect(found.certificate_order, JSON.stringify(found)).to.include({ state });
      return found;
    }, LIMIT_MS);
  /** @throws when the handshake fails, or the certificate is not for the host, or its issuer is not known */
  const handshake = (host: string, ca: string, options: object = {}): Promise<TLSSocket> =>
    new Promise((resolve, reject) => {
      const given = { host: '127.0.0.1', port: tlsPort, servername: host, ca, ...options };
      const socket = connect(given, () => resolve(socket));
      socket.on('error', reject);
    });
  const shown = async (host: string): Promise<string> => {
    const socket = await handshake(host, await pebble.root());
    const { fingerprint256 } = socket.getPeerCertificate();
    socket.destroy();
    return fingerprint256.replaceAll(':', '').toLowerCase();
  };
  const logOf = (name: 'worker' | 'gateway') => stack.processes.get(name)?.printed() ?? '';

  it('orders a certificate for a new domain by HTTP-01, which comes before redirects', async () => {
    const id = await addDomain(HOST);
    await reaches(id, 'issued');
    const found = await certificate(id);
    expect(found).to.deep.include({ ordered_from: pebble.directory, names: [HOST] });
    await eventually(async () => expect(await shown(HOST)).to.equal(found.fingerprint));
    // Other paths, and tokens that are not pending, go the usual way.
    const unknown = await call(`${stack.gatewayUrl}/.well-known/acme-challenge/unknown`, {
      headers: { host: HOST },
    });
    expect(unknown.status).to.equal(308);
    expect(logOf('worker')).not.to.include('PRIVATE KEY');
  });
});
