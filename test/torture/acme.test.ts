/** Certificates by ACME, from a real ACME server (Pebble) to a handshake with a client; real processes. */
import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { Agent, type RequestOptions, request } from 'node:https';
import { createServer, type Socket } from 'node:net';
import * as acme from 'acme-client';
import { expect } from 'chai';
import { runOrder } from '../../jobs/acme.js';
import { Changes } from '../../src/reconcile/changes.js';
import { createSecretBox } from '../../src/secrets/secret-box.js';
import { dueOrders } from '../../src/store/acme.js';
import { addChallenge, removeChallenge } from '../../src/store/acme-challenges.js';
import { type Database, openDatabase } from '../../src/store/database.js';
import { AcmeDomains, ORDER_WAIT_MS } from '../support/acme.js';
import { startAuthority } from '../support/authority.js';
import { eventually } from '../support/eventually.js';
import { expectData, expectFailure, NO_ID } from '../support/expect.js';
import { handshake } from '../support/handshake.js';
import { call } from '../support/http.js';
import { createTestLog } from '../support/log.js';
import { type Pebble, preparePebble } from '../support/pebble.js';
import { freePort } from '../support/ports.js';
import { frontOf } from '../support/process-state.js';
import { type Stack, startStack } from '../support/processes.js';
import { SECRET_KEY } from '../support/test-services.js';

const HOST = 'shop.example';
/** An address of this machine where nothing listens. */
const NOWHERE = '127.0.0.9';
/** One where nothing answers, and one of another gateway. */
const [SILENT, SECOND] = ['127.0.0.8', '127.0.0.2'];
const ELSEWHERE = 'elsewhere.example';

describe('certificates by ACME', function () {
  this.timeout(300_000);
  let stack: Stack;
  let store: Database;
  let pebble: Pebble;
  let domains: AcmeDomains;
  let tlsPort: number;
  let ports: { http: number; tls: number };
  /** A domain whose first order has failed, and when the next one is due. */
  let elsewhere: string;
  let nextTryAt: number;

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
    domains = new AcmeDomains(stack.api);
    ports = { http: Number(new URL(stack.gatewayUrl).port), tls: tlsPort };
    await pebble.start(ports);
    store = openDatabase(stack.databaseUrl, () => undefined);
  });
  after(async () => {
    await store?.close();
    await stack?.close();
    await pebble?.remove();
  });

  const shown = async (host: string): Promise<string> => {
    const socket = await handshake(tlsPort, host, { ca: await pebble.root() });
    const { fingerprint256 } = socket.getPeerCertificate();
    socket.destroy();
    return fingerprint256.replaceAll(':', '').toLowerCase();
  };
  const logOf = (name: 'worker' | 'gateway') => stack.processes.get(name)?.printed() ?? '';

  it('orders a certificate for a new domain by HTTP-01, which comes before redirects', async () => {
    const id = await domains.add(HOST);
    await domains.reaches(id, 'issued');
    const found = await domains.certificate(id);
    expect(found).to.deep.include({ ordered_from: pebble.directory, names: [HOST] });
    await eventually(async () => expect(await shown(HOST)).to.equal(found.fingerprint));
    // Other paths, and tokens that are not pending, go the usual way.
    const unknown = await call(`${stack.gatewayUrl}/.well-known/acme-challenge/unknown`, {
      headers: { host: HOST },
    });
    expect(unknown.status).to.equal(308);
    expect(logOf('worker')).not.to.include('PRIVATE KEY');
  });

  it('orders no certificate for hosts that are no names in the internet, nor for deleted domains', async () => {
    const others = [await domains.add('127.0.0.1'), await domains.add('intranet')];
    await pebble.setAddress('deleted.example', NOWHERE);
    const deleted = await domains.add('deleted.example');
    await domains.reaches(deleted, 'failed');
    expectData(await stack.api.delete(`/api/domains/${deleted}`));
    // One that was added later has its certificate.
    await domains.reaches(await domains.add('later.example'), 'issued');
    for (const id of others) expect((await domains.read(id)).certificate_order).to.equal(null);
    for (const table of ['acme_orders', 'acme_challenges'])
      expect(await store.knex(table).where({ domain_id: deleted }), table).to.deep.equal([]);
  });

  it('says why an order of a certificate failed, and when it is tried again', async () => {
    const host = ELSEWHERE;
    await pebble.setAddress(host, NOWHERE);
    elsewhere = await domains.add(host);
    const { certificate_order: failed } = await domains.reaches(elsewhere, 'failed');
    expect(failed?.error).to.match(/127\.0\.0\.9.*connection refused/i);
    expect(Date.parse(failed?.next_try_at ?? '')).to.be.above(Date.parse(failed?.tried_at ?? ''));
    const line = await eventually(() => {
      const found = stack.processes.get('worker')?.logged.lines.find((one) => one['host'] === host);
      expect(found).not.to.equal(undefined);
      return found;
    });
    expect(line).to.include({ host, reason: failed?.error, retry_seconds: 30 });
    expect(await store.knex('acme_challenges')).to.deep.equal([]);
    nextTryAt = Date.parse(failed?.next_try_at ?? '');
    await pebble.setAddress(host, null);
  });

  it('tries a failed order of a certificate again at once on request', async () => {
    const host = 'put-right.example';
    await pebble.setAddress(host, NOWHERE);
    const id = await domains.add(host);
    const path = `/api/domains/${id}/certificate/order`;
    const { certificate_order: failed } = await domains.reaches(id, 'failed');
    await pebble.setAddress(host, null);
    expectData(await stack.api.post(path));
    const { certificate_order: issued } = await domains.reaches(id, 'issued');
    expect(Date.parse(issued?.tried_at ?? '')).to.be.below(Date.parse(failed?.next_try_at ?? ''));
    expectFailure(await stack.api.post(`/api/domains/${NO_ID}/certificate/order`), 'not_found');
  });

  it('ACME never replaces a certificate that a user has set', async () => {
    const authority = await startAuthority();
    const host = 'own.example';
    const id = await domains.add(host);
    await domains.reaches(id, 'issued');
    // One of these days it would be renewed, were it ordered.
    const own = await authority.issue([host], { days: 1 });
    await authority.remove();
    const saved = expectData<object>(await stack.api.put(`/api/domains/${id}/certificate`, own));
    expect(saved).to.include({ ordered_from: null });
    expect(await domains.read(id)).to.include({ certificate_order: null });
    await store
      .knex('certificates')
      .where({ domain_id: id })
      .update({ valid_from: new Date(Date.now() - 30 * 24 * 3600 * 1000) });
    const { fingerprint } = await domains.certificate(id);
    await domains.reaches(await domains.add('after-own.example'), 'issued');
    expect(await domains.certificate(id)).to.include({ fingerprint, ordered_from: null });
    // Without it, one is ordered.
    expectData(await stack.api.delete(`/api/domains/${id}/certificate`));
    await eventually(
      async () => expect(await domains.certificate(id)).to.include({ ordered_from: pebble.directory }),
      ORDER_WAIT_MS,
    );
  });

  it('orders a certificate for the new host of a domain', async () => {
    const id = await domains.add('before.example');
    await domains.reaches(id, 'issued');
    expectData(await stack.api.put(`/api/domains/${id}`, { host: 'renamed.example' }));
    await eventually(
      async () => expect((await domains.certificate(id)).names).to.deep.equal(['renamed.example']),
      ORDER_WAIT_MS,
    );
  });

  it('lets the ACME server validate an order only when the gateway can answer', async () => {
    const gateway = stack.processes.get('gateway')?.pid ?? 0;
    // Its front goes on, and would not know the challenge.
    process.kill(gateway, 'SIGSTOP');
    let id: string;
    try {
      id = await domains.add('waiting.example');
      await eventually(async () => expect(await store.knex('acme_challenges')).to.have.length(1));
    } finally {
      process.kill(gateway, 'SIGCONT');
    }
    await eventually(async () =>
      expect((await domains.read(id)).certificate_order).not.to.include({ state: 'ordering' }),
    );
    expect((await domains.read(id)).certificate_order).to.include({ state: 'issued', error: null });
  });

  it('orders one certificate for each domain when there are two workers', async () => {
    const second = stack.launch('worker', { METRICS_PORT: '' });
    try {
      await second.ready;
      const hosts = [1, 2, 3, 4, 5, 6].map((number) => `many-${number}.example`);
      const ids = await Promise.all(hosts.map((host) => domains.add(host)));
      await Promise.all(ids.map((id) => domains.reaches(id, 'issued')));
      // It finishes what it has begun.
      await second.end();
      const lines = () => [...(stack.processes.get('worker')?.logged.lines ?? []), ...second.logged.lines];
      await eventually(() => {
        const told = lines().filter(({ host }) => hosts.includes(String(host)));
        expect(told.map(({ host, msg }) => `${host}: ${msg}`).toSorted()).to.deep.equal(
          hosts.map((host) => `${host}: a certificate was ordered`),
        );
      });
    } finally {
      await second.end();
    }
  });

  it('a failed order of a certificate succeeds when it is tried again, at the announced time or later', async () => {
    const { certificate_order: issued } = await domains.reaches(elsewhere, 'issued');
    expect(issued).to.include({ error: null, next_try_at: null });
    expect(Date.parse(issued?.tried_at ?? '')).to.be.at.least(nextTryAt);
    const { fingerprint } = await domains.certificate(elsewhere);
    await eventually(async () => expect(await shown(ELSEWHERE)).to.equal(fingerprint));
  });

  it('each gateway of several answers ACME challenges', async () => {
    // At another address with the same ports: the address of a host decides who is asked.
    const second = stack.launch('gateway', { HOST: SECOND, METRICS_PORT: '' });
    try {
      await second.ready;
      await pebble.setAddress('second.example', SECOND);
      const ids = await Promise.all(['first.example', 'second.example'].map((host) => domains.add(host)));
      for (const id of ids)
        expect((await domains.reaches(id, 'issued')).certificate_order?.error).to.equal(null);
      // Who asks for the challenge of one host gets it from both.
      const { id } = (await store.knex('domains').where({ host: HOST }).first('id')) as { id: string };
      const pending = { domain_id: id, host: HOST, token: 'of-both', answer: 'of-both.thumbprint' };
      const challenge = { ...pending, type: 'http-01', chain: null, key_encrypted: null } as const;
      await addChallenge(store, challenge);
      const { port } = new URL(stack.gatewayUrl);
      for (const address of ['127.0.0.1', SECOND])
        await eventually(async () => {
          const url = `http://${address}:${port}/.well-known/acme-challenge/of-both`;
          expect((await call(url, { headers: { host: HOST } })).text).to.equal('of-both.thumbprint');
        });
      await removeChallenge(store, challenge);
    } finally {
      await second.end();
    }
    // Nobody waits for one that has ended.
    await domains.reaches(await domains.add('alone.example'), 'issued');
  });

  it('answers pending ACME challenges to those who ask for them, and to nobody else', async () => {
    const own = await shown(HOST);
    const secrets = createSecretBox(SECRET_KEY);
    const { id } = (await store.knex('domains').where({ host: HOST }).first('id')) as { id: string };
    const answer = 'pending.thumbprint';
    const [key, chain] = await acme.crypto.createAlpnCertificate(
      { identifier: { type: 'dns', value: HOST } } as acme.Authorization,
      answer,
      await acme.crypto.createPrivateEcdsaKey(),
    );
    const challenge = { domain_id: id, host: HOST, answer, chain: null, key_encrypted: null };
    const overTls = { chain: chain.toString(), key_encrypted: secrets.seal(key.toString()) };
    await addChallenge(store, { ...challenge, token: 'by-http', type: 'http-01' });
    await addChallenge(store, { ...challenge, ...overTls, token: 'by-tls', type: 'tls-alpn-01' });
    const ask = (token: string, options: object = {}) =>
      call(`${stack.gatewayUrl}/.well-known/acme-challenge/${token}`, {
        headers: { host: HOST },
        ...options,
      });
    const answered = await eventually(async () => {
      const found = await ask('by-http');
      expect(found.status).to.equal(200);
      return found;
    });
    expect([answered.text, answered.headers['content-type']]).to.deep.equal([
      answer,
      'application/octet-stream',
    ]);
    expect((await ask('by-http', { headers: { host: `${HOST.toUpperCase()}:80` } })).text).to.equal(answer);
    expect((await ask('by-http?query', { method: 'HEAD' })).status).to.equal(200);
    // A front that takes over knows it from the beginning.
    const gateway = stack.processes.get('gateway');
    gateway?.logged.expectErrors(/front exited, starting another/);
    process.kill(frontOf(gateway?.pid ?? 0) ?? 0, 'SIGKILL');
    // A connection of the one that was killed breaks.
    expect((await eventually(() => ask('by-http'))).status).to.equal(200);
    for (const [token, options] of [
      ['by-tls', {}],
      ['by-http/', {}],
      ['by-http', { method: 'POST' }],
      ['by-http', { headers: { host: 'other.example' } }],
    ] as const)
      expect((await ask(token, options)).status, `${token} ${JSON.stringify(options)}`).to.equal(308);

    const certificateFor = async (host: string, ALPNProtocols: string[]) => {
      const socket = await handshake(tlsPort, host, { ALPNProtocols, rejectUnauthorized: false });
      const found = { alpn: socket.alpnProtocol, der: socket.getPeerCertificate().raw };
      socket.destroy();
      return found;
    };
    const expected = new X509Certificate(chain).raw;
    await eventually(async () => {
      const { alpn, der } = await certificateFor(HOST, ['acme-tls/1']);
      expect(alpn).to.equal('acme-tls/1');
      expect(der.equals(expected)).to.equal(true);
    });
    for (const offered of [[], ['http/1.1'], ['acme-tls/1', 'http/1.1']]) {
      const { alpn, der } = await certificateFor(HOST, offered);
      expect(alpn).not.to.equal('acme-tls/1');
      expect(new X509Certificate(der).fingerprint256.replaceAll(':', '').toLowerCase()).to.equal(own);
    }
    const refused = await certificateFor('later.example', ['acme-tls/1']).then(
      () => 'not refused',
      (error: Error) => error.message,
    );
    expect(refused).to.match(/alert|handshake|ECONNRESET/i);
    await removeChallenge(store, { ...challenge, token: 'by-http', type: 'http-01' });
    await removeChallenge(store, { ...challenge, token: 'by-tls', type: 'tls-alpn-01' });
    await eventually(async () => expect((await ask('by-http')).status).to.equal(308));
    await eventually(async () => {
      const how = await certificateFor(HOST, ['acme-tls/1']).then(
        () => 'not refused',
        () => 'refused',
      );
      expect(how).to.equal('refused');
    });
  });

  it('gives an order of a certificate up at its time limit, and removes its challenge', async () => {
    await stack.processes.get('worker')?.end();
    const connections: Socket[] = [];
    const silent = createServer((connection) => connections.push(connection.on('error', () => undefined)));
    await new Promise<void>((resolve) => silent.listen(ports.http, SILENT, resolve));
    const { log, lines } = createTestLog();
    const changes = new Changes(stack.databaseUrl, ['node'], log);
    try {
      await pebble.setAddress('silent.example', SILENT);
      const id = await domains.add('silent.example');
      const [due] = await dueOrders(store, pebble.directory, 1);
      acme.axios.defaults.httpsAgent = new Agent({ ca: await readFile(pebble.caFile) });
      const context = {
        ...{ store, changes, log, secrets: createSecretBox(SECRET_KEY), directory: pebble.directory },
        ...({ email: 'ada@example.com', challengeType: 'http-01', orderLimitMs: 6_000 } as const),
      };
      await runOrder({ domainId: id, ticket: due?.ticket ?? '' }, context);
      // The server was waiting for the answer.
      expect(connections).not.to.deep.equal([]);
      expect(lines.at(-1)).to.include({ reason: 'The order has not ended within 6 seconds' });
      expect((await domains.read(id)).certificate_order).to.include({ state: 'failed' });
      expect(await store.knex('acme_challenges')).to.deep.equal([]);
    } finally {
      await changes.stop();
      for (const connection of connections) connection.destroy();
      silent.close();
    }
  });

  it('orders a certificate by TLS-ALPN-01', async () => {
    await stack.start('worker', { ACME_CHALLENGE: 'tls-alpn-01' });
    const host = 'by-tls.example';
    const id = await domains.add(host);
    expect((await domains.reaches(id, 'issued')).certificate_order).to.include({ error: null });
    await eventually(async () =>
      expect(await shown(host)).to.equal((await domains.certificate(id)).fingerprint),
    );
    const lines = stack.processes.get('worker')?.logged.lines ?? [];
    const failures = lines.filter(
      (line) => /could not be ordered/.test(line.msg ?? '') && line['host'] === host,
    );
    expect(failures).to.deep.equal([]);
  });

  it('orders from an ACME server that has forgotten the account, and renews without a failed request', async () => {
    await pebble.start(ports, { validitySeconds: 36 });
    const host = 'short.example';
    const id = await domains.add(host);
    const { certificate_order: failed } = await domains.reaches(id, 'failed');
    expect(failed?.error).to.match(/account/i);
    expectData(await stack.api.post(`/api/domains/${id}/certificate/order`));
    await domains.reaches(id, 'issued');
    const first = (await domains.certificate(id)).fingerprint;
    await eventually(async () => expect(await shown(host)).to.equal(first));
    const ca = await pebble.root();
    const kept = new Agent({ keepAlive: true, maxSockets: 1 });
    const get = (agent: Agent | false) => answerOf({ port: tlsPort, servername: host, ca, agent });
    expect(await get(kept)).to.equal('404 on a new connection');
    let current = first;
    // On a connection from before, and on new ones, all the time.
    while (current === first) {
      expect(await get(kept)).to.equal('404 on the same connection');
      expect(await get(false)).to.equal('404 on a new connection');
      current = (await domains.certificate(id)).fingerprint;
    }
    await eventually(async () => expect(await shown(host)).to.equal(current));
    expect(await get(kept)).to.equal('404 on the same connection');
    kept.destroy();
  });
});

/** Sends a request to no endpoint. @throws when there is no answer */
function answerOf(options: RequestOptions): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = { host: options.servername };
    const sent = request({ host: '127.0.0.1', path: '/nothing', headers, ...options }, (answer) => {
      const connection = sent.reusedSocket ? 'the same connection' : 'a new connection';
      answer.resume().on('end', () => resolve(`${answer.statusCode} on ${connection}`));
    });
    sent.on('error', reject).end();
  });
}
