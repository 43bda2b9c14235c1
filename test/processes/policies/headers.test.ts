/** Changed headers, redirects and maintenance; with real processes. */
import { expect } from 'chai';
import { type PolicyStack, type Shown, startPolicyStack } from '../../support/policies.js';
import { RawConnection } from '../../support/raw-http.js';

describe('the policies headers, redirect and maintenance', function () {
  this.timeout(180_000);
  let one: PolicyStack;
  before(async () => {
    one = await startPolicyStack();
  });
  after(() => one?.close());

  it('change the headers that handlers get', async () => {
    await one.set(one.domain, {
      headers: { request: { remove: ['X-Admin'], set: { 'X-Tenant': 'ours' }, add: { Via: 'the edge' } } },
    });
    const { headers } = await one.shown({
      headers: { 'x-admin': '1', 'X-ADMIN': '2', 'x-tenant': 'theirs', via: 'a proxy', 'x-other': 'kept' },
    });
    expect(headers).to.include({ 'x-tenant': 'ours', via: 'a proxy, the edge', 'x-other': 'kept' });
    expect(headers).not.to.have.property('x-admin');
  });

  it('let no removed header through, however it is written', async () => {
    for (const line of [
      'X-Admin: 1',
      'x-aDmIn: 1',
      'X-Admin:1',
      'X-Admin: 1\r\nX-Admin: 2',
      'X-Admin : 1',
      'X-Admin\t: 1',
      ' X-Admin: 1',
      'X-A: b\r\n X-Admin: 1',
      'X-A: b\nX-Admin: 1',
      'X-A: b\rX-Admin: 1',
      'X-Admin\0: 1',
      'Connection: close, X-Tenant\r\nX-Admin: 1',
    ]) {
      const connection = await RawConnection.open(one.stack.gatewayUrl);
      connection.socket.write(
        `GET /shown HTTP/1.1\r\nHost: ${one.host}\r\nConnection: close\r\n${line}\r\n\r\n`,
      );
      const [answer] = await connection.answered(1);
      connection.socket.destroy();
      if (answer?.status === 400) continue;
      expect(answer?.status, line).to.equal(200);
      const { headers } = JSON.parse(answer?.body ?? '') as Shown;
      expect(Object.keys(headers).join(), line).not.to.match(/admin/i);
      expect(headers['x-tenant'], line).to.equal('ours');
    }
  });

  it('let no removed header through behind a body, or in a request hidden in one', async () => {
    const hidden = `POST /shown HTTP/1.1\r\nHost: ${one.host}\r\nX-Admin: 1\r\n\r\n`;
    const chunk = `${hidden.length.toString(16)}\r\n${hidden}\r\n0\r\n`;
    for (const [lines, body] of [
      ['Transfer-Encoding: chunked\r\nTrailer: X-Admin', `${chunk}X-Admin: 1\r\n\r\n`],
      ['Transfer-Encoding: chunked', `${chunk}x-admin: 1\r\nX-Admin : 1\r\n\r\n`],
      ['Content-Length: 5\r\nTransfer-Encoding: chunked', `0\r\n\r\n${hidden}`],
      [`Content-Length: 0\r\nContent-Length: ${hidden.length}`, hidden],
      ['Transfer-Encoding: xchunked', `0\r\n\r\n${hidden}`],
      [`Content-Length: ${hidden.length}`, hidden],
    ] as const) {
      const connection = await RawConnection.open(one.stack.gatewayUrl);
      connection.send(`POST /shown HTTP/1.1\r\nHost: ${one.host}\r\n${lines}\r\n\r\n${body}`);
      // The one that is last, whatever the gateway takes for requests.
      connection.send(`POST /shown HTTP/1.1\r\nHost: ${one.host}\r\nConnection: close\r\n\r\n`);
      const answers = await connection.ended();
      connection.close();
      expect(answers.length, lines).to.be.within(1, 2);
      for (const { status, body: text } of answers) {
        if (status === 400 || status === 501) continue;
        expect(status, lines).to.equal(200);
        expect(Object.keys((JSON.parse(text) as Shown).headers).join(), lines).not.to.match(/admin/i);
      }
    }
  });

  it('change the headers of answers, also of those of the gateway', async () => {
    await one.set(one.domain, {
      headers: {
        response: { remove: ['X-Internal'], set: { 'X-Kind': 'set' }, add: { 'X-More': 'added' } },
        security_headers: true,
      },
    });
    const path = '/shown?header-X-Internal=secret&header-X-Kind=own&header-X-Frame-Options=SAMEORIGIN';
    const { headers } = await one.send({ path });
    expect(headers).to.include({
      'x-kind': 'set',
      'x-more': 'added',
      'x-frame-options': 'SAMEORIGIN',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
    });
    expect(headers['strict-transport-security']).to.match(/^max-age=\d+/);
    expect(headers).not.to.have.property('x-internal');
    await one.set(one.endpoint, { ip: { deny: ['127.0.0.1'] } });
    const refused = await one.send();
    expect(refused.status).to.equal(403);
    expect(refused.headers).to.include({ 'x-kind': 'set', 'x-frame-options': 'DENY' });
    await one.set(one.endpoint, null);
  });

  it('redirect, and keep path and query', async () => {
    await one.set(one.domain, { redirect: { to: 'https://new.example/v2/', status: 308, keep_path: true } });
    const { status, headers, text } = await one.send({ path: '/shown?a=%20b' });
    expect([status, headers['location'], text]).to.deep.equal([
      308,
      'https://new.example/v2/shown?a=%20b',
      '',
    ]);
    await one.set(one.domain, { redirect: { to: 'https://new.example/' }, maintenance: {} });
    const again = await one.send({ path: '/shown?a=b' });
    expect([again.status, again.headers['location']]).to.deep.equal([307, 'https://new.example/']);
  });

  it('announce maintenance, to those who may come in', async () => {
    await one.set(one.domain, { maintenance: { message: 'Back at noon.', retry_after_seconds: 90 } });
    const { status, headers, text } = await one.send();
    expect([status, headers['retry-after'], text]).to.deep.equal([503, '90', '{"error":"Back at noon."}']);
    await one.set(one.domain, { maintenance: {}, auth: { api_key: {} } });
    expect((await one.send()).status).to.equal(401);
    await one.set(one.domain, null);
    expect((await one.send()).status).to.equal(200);
  });

  it('keep the session of who is signed in at the API from handlers, which cannot set it either', async () => {
    // Browsers send the cookies of a host to all its ports.
    const { headers } = await one.shown({ headers: { cookie: 'a=b; egw_session=secret; c=d' } });
    expect(headers['cookie']).to.equal('a=b; c=d');
    const alone = await one.shown({ headers: { cookie: 'egw_session=secret; egw_sign_in=secret' } });
    expect(alone.headers).not.to.have.property('cookie');

    const set = async (cookie: string) =>
      (await one.send({ path: `/shown?header-Set-Cookie=${encodeURIComponent(cookie)}` })).headers[
        'set-cookie'
      ];
    expect(await set('mine=1; Path=/')).to.deep.equal(['mine=1; Path=/']);
    for (const planted of [
      'egw_session=mine; Path=/',
      '=egw_session=mine',
      ' egw_session =; Max-Age=0',
      'egw_sign_in=x',
    ])
      expect(await set(planted), planted).to.equal(undefined);
    await one.set(one.endpoint, { headers: { response: { set: { 'Set-Cookie': 'egw_session=mine' } } } });
    expect((await one.send()).headers).not.to.have.property('set-cookie');
    await one.set(one.endpoint, null);
  });
});
