/** Every row of the table of odd requests, over raw sockets, against both servers as they run. */
import { expect } from 'chai';
import { ERROR_CATALOGUE, type ErrorCode } from '../../src/errors.js';
import { eventually } from '../support/eventually.js';
import { ANYTHING } from '../support/handler-sources.js';
import { type Stack, startStack } from '../support/processes.js';
import { type RawAnswer, RawConnection, rawExchange } from '../support/raw-http.js';
import { type Outcome, type Place, SECTIONS, SMUGGLED } from './request-table.js';

const statusOf = (outcome: Outcome) =>
  outcome === 'taken' ? outcome : String(ERROR_CATALOGUE[outcome].status);

describe('hostile requests', () => {
  let stack: Stack;
  const places: Record<'gateway' | 'api', Place> = {
    gateway: { get: '/odd/get', post: '/odd/post', host: 'localhost' },
    api: { get: '/api/stats', post: '/api/domains', host: 'localhost' },
  };

  before(async () => {
    stack = await startStack({ env: { LOG_LEVEL: 'debug' } });
    await stack.deploy({ path: places.gateway.get, code: ANYTHING, domain: 'localhost' });
    await stack.deploy({ path: places.gateway.post, code: ANYTHING, domain: 'localhost', method: 'POST' });
    await stack.deploy({ path: '/smuggled', code: ANYTHING, domain: 'localhost' });
  });
  after(() => stack.close());

  const urlOf = (server: 'gateway' | 'api') => (server === 'gateway' ? stack.gatewayUrl : stack.apiUrl);
  const good = ({ get, host }: Place) => `GET ${get} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;

  for (const server of ['gateway', 'api'] as const) {
    const expectOwn = ({ status, headers, body }: RawAnswer, code: ErrorCode) => {
      expect(status, body).to.equal(ERROR_CATALOGUE[code].status);
      expect(headers['content-type']).to.match(/^application\/json/);
      expect(headers['x-request-id']).to.match(/^[\w-]+$/);
      const shown = JSON.parse(body) as object;
      if (server === 'gateway') expect(shown).to.have.all.keys('error');
      else expect(shown).to.include({ ok: false, code });
    };
    const expectTaken = ({ status, body }: RawAnswer) => {
      // The management API has read the body, and misses fields in it.
      if (server === 'api' && status !== 200) expect(JSON.parse(body)).to.include({ code: 'invalid_input' });
      else expect(status, body).to.equal(200);
    };

    describe(server === 'gateway' ? 'to the gateway' : 'to the management API', () => {
      const place = places[server];
      for (const { title, rows } of SECTIONS) {
        describe(title, () => {
          for (const { input, bytes, gateway, http1, api = gateway } of rows) {
            if (server === 'gateway' && http1 !== undefined) continue;
            const outcome = server === 'gateway' ? gateway : api;
            it(`${input}: ${statusOf(outcome)}`, async () => {
              const hostile = await RawConnection.open(urlOf(server));
              try {
                hostile.send(bytes(place));
                if (outcome === 'taken') {
                  expectTaken((await hostile.answered(1))[0] as RawAnswer);
                } else {
                  const closes = outcome === 'malformed_request';
                  const [first, ...more] = closes ? await hostile.ended() : await hostile.answered(1);
                  expectOwn(first as RawAnswer, outcome);
                  expect(more).to.deep.equal([]);
                }
              } finally {
                hostile.close();
              }
              expectTaken((await rawExchange(urlOf(server), good(place)))[0] as RawAnswer);
            });
          }
        });
      }
    });
  }

  it('to activate a service are refused in the envelope of that', async () => {
    const refused = `POST /api/services/x/activate HTTP/1.1\r\nHost: localhost\r\nX_Under: 1\r\n\r\n`;
    const [answer] = await rawExchange(stack.apiUrl, refused);
    expect(JSON.parse(answer?.body ?? '')).to.include({
      success: false,
      ok: false,
      code: 'malformed_request',
    });
  });

  it('never become two', async () => {
    const asked = (name: 'gateway' | 'web') =>
      (stack.processes.get(name)?.logged.lines ?? []).filter(
        (line) => line.msg === 'request' && line['route'] === '/smuggled',
      );
    expect([...asked('gateway'), ...asked('web')]).to.deep.equal([]);
    // One that is asked for in the open is seen.
    for (const [server, name] of [
      ['gateway', 'gateway'],
      ['api', 'web'],
    ] as const) {
      const open = await RawConnection.open(urlOf(server));
      await open.send(SMUGGLED).answered(1);
      open.close();
      await eventually(() => expect(asked(name)).to.have.length(1));
    }
  });
});
