/**
 * The table of odd requests, over raw sockets: every row against the management API as it runs, and one against the
 * gateway, whose rows are all sent by `rust/front/tests/front/hostile_requests.rs`.
 */
import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { ERROR_CATALOGUE, type ErrorCode } from '../../src/errors.js';
import { eventually } from '../support/eventually.js';
import { ANYTHING } from '../support/handler-sources.js';
import { type Stack, startStack } from '../support/processes.js';
import { type RawAnswer, RawConnection, rawExchange } from '../support/raw-http.js';
import { bytesOf, type Outcome, type Place, TABLE } from './request-table.js';

const API: Place = { get: '/api/stats', post: '/api/domains', host: 'localhost' };
const GATEWAY: Place = { get: '/odd/get', post: '/odd/post', host: 'localhost' };
const ROWS = TABLE.sections.flatMap(({ rows }) => rows);

const statusOf = (outcome: Outcome) =>
  outcome === 'taken' ? outcome : String(ERROR_CATALOGUE[outcome].status);

describe('hostile requests', () => {
  let stack: Stack;
  before(async () => {
    stack = await startStack({ env: { LOG_LEVEL: 'debug' } });
    await stack.deploy({ path: GATEWAY.post, code: ANYTHING, domain: 'localhost', method: 'POST' });
    await stack.deploy({ path: '/smuggled', code: ANYTHING, domain: 'localhost' });
  });
  after(() => stack.close());

  /** What comes back; all until the end where the server has to close. */
  const answersTo = async (url: string, bytes: string, closes: boolean): Promise<readonly RawAnswer[]> => {
    const hostile = await RawConnection.open(url);
    try {
      hostile.send(bytes);
      return closes ? await hostile.ended() : await hostile.answered(1);
    } finally {
      hostile.close();
    }
  };
  const expectRefused = ({ status, headers, body }: RawAnswer, code: ErrorCode) => {
    expect(status, body).to.equal(ERROR_CATALOGUE[code].status);
    expect(headers['content-type']).to.match(/^application\/json/);
    expect(headers['x-request-id']).to.match(/^[\w-]+$/);
  };

  describe('the management API', () => {
    const expectTaken = ({ status, body }: RawAnswer) => {
      // It has read the body, and misses fields in it.
      if (status !== 200) expect(JSON.parse(body)).to.include({ code: 'invalid_input' });
    };

    for (const { title, rows } of TABLE.sections) {
      describe(title, () => {
        for (const row of rows) {
          const { input, gateway, api: outcome = gateway } = row;
          const does = outcome === 'taken' ? 'accepts' : `answers ${statusOf(outcome)} to`;
          it(`management API ${does} an odd request: ${input}`, async () => {
            const closes = outcome === 'malformed_request';
            const [first, ...more] = await answersTo(stack.apiUrl, bytesOf(row, API), closes);
            if (outcome === 'taken') expectTaken(first as RawAnswer);
            else {
              expectRefused(first as RawAnswer, outcome);
              expect(JSON.parse(first?.body ?? '')).to.include({ ok: false, code: outcome });
              expect(more).to.deep.equal([]);
            }
            const good = `GET ${API.get} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`;
            expect((await rawExchange(stack.apiUrl, good))[0]?.status).to.equal(200);
          });
        }
      });
    }
  });

  it('refuses a hostile request to the gateway in its front, which closes the connection', async () => {
    const row = ROWS.find(({ input }) => input.endsWith('(CL.TE)')) ?? expect.fail('no such row');
    const [first, ...more] = await answersTo(stack.gatewayUrl, bytesOf(row, GATEWAY), true);
    expectRefused(first as RawAnswer, 'malformed_request');
    expect(JSON.parse(first?.body ?? '')).to.have.all.keys('error');
    expect(more).to.deep.equal([]);
  });

  it('refuses a hostile request to activate a service in the envelope of that route', async () => {
    const refused = `POST /api/services/x/activate HTTP/1.1\r\nHost: localhost\r\nX_Under: 1\r\n\r\n`;
    const [answer] = await rawExchange(stack.apiUrl, refused);
    expect(JSON.parse(answer?.body ?? '')).to.include({
      success: false,
      ok: false,
      code: 'malformed_request',
    });
  });

  it('never reads one hostile request as two', async () => {
    const asked = (name: 'gateway' | 'web') =>
      (stack.processes.get(name)?.logged.lines ?? []).filter(
        (line) => line.msg === 'request' && line['route'] === '/smuggled',
      );
    expect([...asked('gateway'), ...asked('web')]).to.deep.equal([]);
    // One that is asked for in the open is seen.
    for (const [url, name] of [
      [stack.gatewayUrl, 'gateway'],
      [stack.apiUrl, 'web'],
    ] as const) {
      await answersTo(url, TABLE.smuggled, false);
      await eventually(() => expect(asked(name)).to.have.length(1));
    }
  });

  it('documents outcomes of hostile requests in docs/HTTP.md, with the statuses of the catalogue', async () => {
    for (const [code, status] of Object.entries(TABLE.statuses))
      expect(ERROR_CATALOGUE[code as ErrorCode].status, code).to.equal(status);
    const documented = await readFile('docs/HTTP.md', 'utf8');
    for (const { input, gateway, http1 = statusOf(gateway), http2, api = gateway } of ROWS)
      expect(documented).to.include(
        `| ${input} | ${http1} | ${http2?.outcome ?? 'n/a'} | ${statusOf(api)} |\n`,
      );
    for (const { input, http2 } of TABLE.onlyHttp2)
      expect(documented).to.include(`| ${input} | ${http2.outcome} |\n`);
  });
});
