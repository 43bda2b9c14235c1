/** Alerts: webhooks to a real server, from real processes. */
import { createHmac } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { openDatabase } from '../../../src/store/database.js';
import { liveNodes } from '../../../src/store/nodes.js';
import { startApi, type TestApi } from '../../support/api.js';
import { startAuthority } from '../../support/authority.js';
import { eventually } from '../../support/eventually.js';
import { expectData, expectFailure, NO_ID } from '../../support/expect.js';
import { call } from '../../support/http.js';
import { type Stack, startStack } from '../../support/processes.js';
import { SECRET_KEY } from '../../support/test-services.js';

const CODE = `
use rust_edge_gateway_sdk::prelude::*;
fn handle(req: Request) -> Response {
    if req.query_param("exit").is_some() { std::process::exit(3); }
    let status = req.query_param("status").and_then(|text| text.parse().ok()).unwrap_or(200);
    Response::new(status)
}
handler_loop!(handle);
`;

interface Told {
  readonly type: string;
  readonly status: 'firing' | 'resolved';
  readonly alert_id: string;
  readonly event_id: string;
  readonly subject: Record<string, string>;
  readonly message: string;
  readonly began_at: string;
  readonly ended_at: string | null;
}

interface Received {
  readonly path: string;
  readonly id: string;
  readonly isSigned: boolean;
  readonly told: Told;
}

interface Alert {
  readonly id: string;
  readonly url: string;
  readonly secret: string;
}

interface AlertEvent {
  readonly message: string;
  readonly ended_at: string | null;
  readonly deliveries: readonly {
    status: string;
    state: string;
    attempts: number;
    last_status: number | null;
  }[];
}

describe('alerts', function () {
  this.timeout(180_000);
  let stack: Stack;
  let receiver: Server;
  let receiverUrl: string;
  const received: Received[] = [];
  /** By alert. */
  const secrets = new Map<string, string>();
  /** Alerts whose next webhook is not taken. */
  const notTaken = new Set<string>();

  before(async () => {
    receiver = createServer((request, response) => {
      void text(request).then((body) => {
        const told = JSON.parse(body) as Told;
        const { 'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': signature } = request.headers;
        const key = Buffer.from(secrets.get(told.alert_id)?.replace('whsec_', '') ?? '', 'base64');
        const expected = createHmac('sha256', key).update(`${id}.${at}.${body}`).digest('base64');
        received.push({
          path: request.url ?? '',
          id: String(id),
          isSigned: signature === `v1,${expected}`,
          told,
        });
        if (request.url?.endsWith('/moved')) response.writeHead(307, { Location: '/hook' }).end();
        else response.writeHead(notTaken.delete(told.alert_id) ? 500 : 204).end();
      });
    });
    await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
    const address = receiver.address();
    receiverUrl = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/hook`;
    stack = await startStack({ env: { ALLOW_PRIVATE_URLS: 'true', SECRET_KEY } });
  });
  after(async () => {
    await stack?.close();
    receiver?.close();
  });

  const alertOn = async (on: string, more: object = {}) => {
    const alert = expectData<Alert>(
      await stack.api.post('/api/alerts', { on, url: receiverUrl, ...more }),
      201,
    );
    secrets.set(alert.id, alert.secret);
    return alert;
  };
  const toldOf = ({ id }: Alert) =>
    received
      .filter(({ told }) => told.alert_id === id)
      .map(({ told }) => [told.status, told.subject['name']]);
  const events = async ({ id }: Alert) =>
    expectData<AlertEvent[]>(await stack.api.get(`/api/alerts/${id}/events`));
  /** A service that nobody serves. */
  const activate = async (name: string) => {
    const service = { name, service_type: 'redis', config: { host: '127.0.0.1', port: 1 } };
    const { id } = expectData<{ id: string }>(await stack.api.post('/api/services', service), 201);
    await stack.api.post(`/api/services/${id}/activate`);
    return id;
  };
  const crashUntil = async (path: string, assertion: () => void) => {
    const url = `${stack.gatewayUrl}${path}?exit=1`;
    const crash = setInterval(() => void call(url).catch(() => undefined), 50);
    try {
      await eventually(assertion);
    } finally {
      clearInterval(crash);
    }
  };
  let failing: string | undefined;
  /** Resolves when it was looked at once more what is the case: an alert that is new by then has been told. */
  const nextCheck = async () => {
    if (failing === undefined) {
      failing = await endpoint('/failing');
      expectData(await stack.api.put(`/api/endpoints/${failing}`, { code: 'fn nothing() {}' }));
      expectFailure(await stack.api.post(`/api/endpoints/${failing}/compile`), 'compile_failed');
    }
    const alert = await alertOn('build_failed', { scope: { endpoint_id: failing } });
    await eventually(() => expect(toldOf(alert)).to.have.length(1));
  };
  const endpoint = async (path: string) => stack.deploy({ name: path.slice(1), path, code: CODE });

  it('sends one alert when builds of an endpoint fail, and one when they succeed again', async () => {
    const alert = await alertOn('build_failed');
    const id = await endpoint('/builds');
    for (const code of ['fn nothing() {}', 'fn nothing_again() {}']) {
      expectData(await stack.api.put(`/api/endpoints/${id}`, { code }));
      expectFailure(await stack.api.post(`/api/endpoints/${id}/compile`), 'compile_failed');
      await eventually(() => expect(toldOf(alert)).to.deep.equal([['firing', 'builds']]));
    }
    expectData(await stack.api.put(`/api/endpoints/${id}`, { code: CODE }));
    expectData(await stack.api.post(`/api/endpoints/${id}/compile`));
    await eventually(() =>
      expect(toldOf(alert)).to.deep.equal([
        ['firing', 'builds'],
        ['resolved', 'builds'],
      ]),
    );
    const [first, last] = received;
    expect(received.every(({ isSigned }) => isSigned)).to.equal(true);
    expect(first?.told).to.deep.include({ type: 'build_failed', ended_at: null });
    expect(first?.told.subject).to.include({ endpoint_id: id, route: '/builds', method: 'GET', domain: '*' });
    expect(first?.told.message).to.match(/nothing|main|error/);
    expect(last?.told.event_id).to.equal(first?.told.event_id);
    expect(Date.parse(last?.told.ended_at ?? '')).to.be.above(Date.parse(last?.told.began_at ?? ''));
    // What became of a delivery is recorded after the receiver has answered it.
    await eventually(async () => {
      const [event, ...others] = await events(alert);
      expect(others).to.deep.equal([]);
      expect(event?.deliveries).to.deep.equal([
        { status: 'firing', state: 'sent', attempts: 1, last_status: 204, last_error: null },
        { status: 'resolved', state: 'sent', attempts: 1, last_status: 204, last_error: null },
      ]);
    });
  });

  it('sends an alert for a handler that keeps crashing, and resolves it when the endpoint is stopped', async () => {
    const id = await endpoint('/crash');
    const other = await alertOn('crash_loop', { scope: { endpoint_id: await endpoint('/no-crash') } });
    const alert = await alertOn('crash_loop', { scope: { endpoint_id: id } });
    await crashUntil('/crash', () => expect(toldOf(alert)).to.deep.equal([['firing', 'crash']]));
    expect((await events(alert))[0]?.message).to.match(/The handler crashed: it ended with exit code 3/);
    await stack.api.post(`/api/endpoints/${id}/stop`);
    await eventually(() => expect(toldOf(alert)).to.have.length(2));
    expect(toldOf(alert)[1]).to.deep.equal(['resolved', 'crash']);
    expect(toldOf(other)).to.deep.equal([]);
  });

  it('sends an alert when the share of errors exceeds its limit, and resolves it well below the limit', async () => {
    const id = await endpoint('/errors');
    const alert = await alertOn('error_rate', { scope: { endpoint_id: id }, percent: 20, minutes: 5 });
    for (let count = 0; count < 30; count++)
      await call(`${stack.gatewayUrl}/errors?status=${count % 3 === 0 ? 500 : 200}`);
    await eventually(() => expect(toldOf(alert)).to.deep.equal([['firing', 'errors']]));
    // It is looked at while the requests come, and each thread of the gateway tells of its own.
    const [, errors, requests] =
      /^In 5 min (\d+) of (\d+) requests had an error \([\d.]+ %, the limit is 20 %\)\.$/.exec(
        (await events(alert))[0]?.message ?? '',
      ) ?? [];
    expect(Number(errors)).to.be.within(1, 10);
    expect(Number(requests)).to.be.within(Number(errors), 30);
    expect(Number(errors) / Number(requests)).to.be.above(0.2);
    // Only just below the limit it is not over.
    expectData(await stack.api.put(`/api/alerts/${alert.id}`, { percent: 40 }));
    await nextCheck();
    expect(toldOf(alert)).to.have.length(1);
    expectData(await stack.api.put(`/api/alerts/${alert.id}`, { percent: 50 }));
    await eventually(() => expect(toldOf(alert)).to.have.length(2));
  });

  it('sends an alert for a certificate that expires soon, and resolves it when there is a newer one', async () => {
    const authority = await startAuthority();
    try {
      const domain = { name: 'shop', host: 'shop.example' };
      const { id } = expectData<{ id: string }>(await stack.api.post('/api/domains', domain), 201);
      expectData(await stack.api.post('/api/domains', { name: 'other', host: 'other.example' }), 201);
      const certify = async (days: number) =>
        expectData(
          await stack.api.put(
            `/api/domains/${id}/certificate`,
            await authority.issue(['shop.example'], { days }),
          ),
        );
      await certify(10);
      const other = await alertOn('certificate_expiry', { scope: { domain: 'other.example' } });
      const later = await alertOn('certificate_expiry', { days: 5 });
      const alert = await alertOn('certificate_expiry', { scope: { domain: 'shop.example' } });
      await eventually(() => expect(toldOf(alert)).to.deep.equal([['firing', 'shop']]));
      expect((await events(alert))[0]?.message).to.equal(
        'The certificate of shop.example expires in 10 days.',
      );
      await certify(90);
      await eventually(() => expect(toldOf(alert)).to.have.length(2));
      expect([...toldOf(other), ...toldOf(later)]).to.deep.equal([]);
    } finally {
      await authority.remove();
    }
  });

  it('sends an alert for a service that cannot be reached, and resolves it when it is deactivated', async () => {
    const alert = await alertOn('service_unreachable');
    const id = await activate('cache');
    await eventually(() => expect(toldOf(alert)).to.deep.equal([['firing', 'cache']]));
    expect((await stack.api.post(`/api/services/${id}/deactivate`)).status).to.equal(200);
    await eventually(() => expect(toldOf(alert)).to.have.length(2));
  });

  it('resolves no alert while the actor host is stopped and the gateway is killed', async () => {
    const id = await endpoint('/crash-on');
    const crashing = await alertOn('crash_loop', { scope: { endpoint_id: id } });
    const service = await activate('on');
    const unreachable = await alertOn('service_unreachable', { scope: { service_id: service } });
    await eventually(() => expect(toldOf(unreachable)).to.have.length(1));
    await crashUntil('/crash-on', () => expect(toldOf(crashing)).to.have.length(1));
    // The next one needs no gateway.
    await nextCheck();

    const host = stack.processes.get('actor-host');
    process.kill(host?.pid ?? 0, 'SIGSTOP');
    await stack.processes.get('gateway')?.end('SIGKILL');
    const store = openDatabase(stack.databaseUrl, () => undefined);
    try {
      for (const kind of ['actor-host', 'gateway'] as const)
        await eventually(async () => expect(await liveNodes(store, kind)).to.deep.equal([]));
      await nextCheck();
      expect(toldOf(unreachable)).to.deep.equal([['firing', 'on']]);
      expect(toldOf(crashing)).to.deep.equal([['firing', 'crash-on']]);
    } finally {
      process.kill(host?.pid ?? 0, 'SIGCONT');
      await stack.start('gateway');
      await store.close();
    }
    // It runs again, and nobody makes it crash.
    await eventually(() => expect(toldOf(crashing)).to.have.length(2));
    await nextCheck();
    expect(await events(crashing)).to.have.length(1);
    const [event, ...others] = await events(unreachable);
    expect([event?.ended_at, others]).to.deep.equal([null, []]);
    expect((await stack.api.post(`/api/services/${service}/deactivate`)).status).to.equal(200);
    await eventually(() => expect(toldOf(unreachable)).to.have.length(2));
  });

  it('counts a redirect of a webhook as a failed delivery, and does not follow it', async () => {
    const id = await endpoint('/redirected');
    const alert = await alertOn('build_failed', { scope: { endpoint_id: id }, url: `${receiverUrl}/moved` });
    expectData(await stack.api.put(`/api/endpoints/${id}`, { code: 'fn nothing() {}' }));
    expectFailure(await stack.api.post(`/api/endpoints/${id}/compile`), 'compile_failed');
    await eventually(async () => {
      const [event] = await events(alert);
      const [delivery] = event?.deliveries ?? [];
      expect(delivery).to.include({ status: 'firing', state: 'queued', last_status: 307 });
      expect(delivery?.attempts).to.be.at.least(2);
    });
    const paths = received.filter(({ told }) => told.alert_id === alert.id).map(({ path }) => path);
    expect(new Set(paths)).to.deep.equal(new Set(['/hook/moved']));
  });

  it('repeats a webhook that its receiver has refused, with the same id', async () => {
    const id = await endpoint('/again');
    const alert = await alertOn('build_failed', { scope: { endpoint_id: id } });
    notTaken.add(alert.id);
    expectData(await stack.api.put(`/api/endpoints/${id}`, { code: 'fn nothing() {}' }));
    expectFailure(await stack.api.post(`/api/endpoints/${id}/compile`), 'compile_failed');
    await eventually(async () => {
      const [event] = await events(alert);
      expect(event?.deliveries).to.deep.equal([
        { status: 'firing', state: 'sent', attempts: 2, last_status: 204, last_error: null },
      ]);
    });
    const ids = received.filter(({ told }) => told.alert_id === alert.id).map((webhook) => webhook.id);
    expect(ids).to.have.length(2);
    expect(new Set(ids).size).to.equal(1);
  });

  it('shows the secret of an alert only once, and changes and deletes the alert', async () => {
    const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
    const settings = { enabled: false, percent: 50, days: 3 };
    const alert = await alertOn('crash_loop', { secret, ...settings });
    expect(alert.secret).to.equal(secret);
    const shown = expectData<Record<string, unknown>>(await stack.api.get(`/api/alerts/${alert.id}`));
    expect(shown).to.deep.include({ on: 'crash_loop', scope: null, url: receiverUrl, enabled: false });
    expect(shown).not.to.have.property('secret');
    expect(JSON.stringify(expectData(await stack.api.get('/api/alerts')))).not.to.include('whsec_');
    const change = { url: `${receiverUrl}/other`, scope: { domain: 'A.example' }, minutes: 10 };
    const changed = expectData<object>(await stack.api.put(`/api/alerts/${alert.id}`, change));
    expect(changed).to.deep.include({ ...settings, ...change, scope: { domain: 'a.example' } });
    expectData(await stack.api.delete(`/api/alerts/${alert.id}`));
    for (const path of ['', '/events'])
      expectFailure(await stack.api.get(`/api/alerts/${alert.id}${path}`), 'not_found');
  });

  it('refuses an alert about an endpoint, service or domain that does not exist', async () => {
    const before = expectData(await stack.api.get('/api/alerts'));
    const refused = async (on: string, scope: object, message: RegExp) =>
      expectFailure(
        await stack.api.post('/api/alerts', { on, url: receiverUrl, scope }),
        'not_found',
        message,
      );
    await refused('crash_loop', { endpoint_id: NO_ID }, /The endpoint .* does not exist/);
    await refused('service_unreachable', { service_id: NO_ID }, /The service .* does not exist/);
    for (const domain of ['nobody.example', '*'])
      await refused(
        'certificate_expiry',
        { domain },
        /body\.scope\.domain: there is no domain with the host/,
      );
    expect(expectData(await stack.api.get('/api/alerts'))).to.deep.equal(before);
    const alert = await alertOn('build_failed');
    const change = { scope: { endpoint_id: NO_ID } };
    expectFailure(await stack.api.put(`/api/alerts/${alert.id}`, change), 'not_found');
    expect(expectData(await stack.api.get(`/api/alerts/${alert.id}`))).to.include({ scope: null });
    expectData(await stack.api.delete(`/api/alerts/${alert.id}`));
  });

  it('refuses alerts with invalid settings, naming the setting', async () => {
    const refused = async (body: object, message: RegExp) =>
      expectFailure(await stack.api.post('/api/alerts', body), 'invalid_input', message);
    const url = receiverUrl;
    await refused({ on: 'rain', url }, /body\.on/);
    const scope = { endpoint_id: NO_ID };
    await refused(
      { on: 'certificate_expiry', url, scope },
      /body\.scope: of "certificate_expiry" it must have a domain/,
    );
    await refused({ on: 'crash_loop' }, /body\.url/);
    await refused({ on: 'crash_loop', url: 'ftp://example.com/' }, /body\.url: must be a URL such as/);
    await refused(
      { on: 'crash_loop', url: 'http://me:pw@example.com/' },
      /must have no user and no password/,
    );
    await refused({ on: 'crash_loop', url, secret: 'short' }, /body\.secret/);
    await refused({ on: 'crash_loop', url, scope: { service_id: NO_ID } }, /body\.scope: of "crash_loop"/);
    await refused({ on: 'service_unreachable', url, scope: { domain: 'a.b' } }, /must have a service_id/);
    await refused({ on: 'error_rate', url, percent: 0 }, /body\.percent/);
  });
});

describe('alerts without ALLOW_PRIVATE_URLS', () => {
  let api: TestApi;
  before(async () => {
    api = await startApi();
  });
  after(() => api?.close());

  for (const host of [
    ...['127.0.0.1', 'localhost', '10.1.2.3', '192.168.0.1', '169.254.169.254', '100.64.0.1', '0.0.0.0'],
    ...[
      '[::1]',
      '[::ffff:127.0.0.1]',
      '[fe80::1]',
      '[fd00::1]',
      '[64:ff9b::7f00:1]',
      '[::127.0.0.1]',
      '[::7f00:1]',
      '2130706433',
      '0x7f.1',
    ],
  ]) {
    it(`refuses an alert with a webhook to ${host}`, async () => {
      const alert = { on: 'crash_loop', url: `http://${host}/hook` };
      const answer = await api.post('/api/alerts', alert);
      expectFailure(answer, 'invalid_input', /body\.url: .* is not an address of the internet/);
    });
  }

  it('refuses an alert with a webhook to a host that cannot be found', async () => {
    const alert = { on: 'crash_loop', url: 'https://hook.invalid/' };
    const answer = await api.post('/api/alerts', alert);
    expectFailure(answer, 'invalid_input', /body\.url: the host hook\.invalid cannot be found/);
  });
});
