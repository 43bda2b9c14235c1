/** The rows of the tables of odd requests over HTTP/2, frame by frame, against the gateway as it runs. */
import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { ERROR_CATALOGUE } from '../../src/errors.js';
import { ANYTHING } from '../support/handler-sources.js';
import { type Stack, startStack } from '../support/processes.js';
import { CODE, RawHttp2, type StreamEnd } from '../support/raw-http2.js';
import { HTTP2_ROWS, type Http2Outcome, type Http2Row, ONLY_HTTP2 } from './http2-table.js';
import { type Outcome, type Place, SECTIONS } from './request-table.js';

const statusOf = (outcome: Outcome) =>
  outcome === 'taken' ? outcome : String(ERROR_CATALOGUE[outcome].status);

describe('odd requests over HTTP/2', () => {
  let stack: Stack;
  const place: Place = { get: '/odd/get', post: '/odd/post', host: 'localhost' };

  before(async () => {
    stack = await startStack();
    await stack.deploy({ path: place.get, code: ANYTHING, domain: 'localhost' });
    await stack.deploy({ path: place.post, code: ANYTHING, domain: 'localhost', method: 'POST' });
  });
  after(() => stack.close());

  function expectOutcome(end: StreamEnd, outcome: Http2Outcome): void {
    const shown = JSON.stringify(end);
    if (outcome === 'closed') {
      expect(end.status, shown).to.equal(undefined);
      expect(end.goAway, shown).to.be.above(0);
    } else if (outcome === 'reset' || (outcome === '400, or reset' && end.status === undefined)) {
      expect(end, shown).to.include({ reset: CODE.protocol }).and.not.have.property('goAway');
    } else {
      const status = outcome === '400, or reset' ? 400 : outcome;
      expect(end.status, shown).to.equal(status === 'taken' ? 200 : status);
      if (outcome !== 'taken') expect(JSON.parse(end.body)).to.have.all.keys('error');
    }
  }

  const rows: readonly [string, Http2Row][] = [...Object.entries(HTTP2_ROWS), ...Object.entries(ONLY_HTTP2)];
  for (const [input, { fields, body, trailers, outcome }] of rows) {
    it(`${input}: ${outcome}`, async () => {
      const connection = await RawHttp2.open(stack.gatewayUrl);
      try {
        expectOutcome(await connection.ended(connection.request(fields(place), body, trailers)), outcome);
        const good = (HTTP2_ROWS['a body with GET'] as Http2Row).fields(place);
        if (outcome === 'closed') {
          await connection.closed();
          const next = await RawHttp2.open(stack.gatewayUrl);
          expectOutcome(await next.ended(next.request(good)), 'taken');
          next.close();
        } else {
          // Other streams of the connection go on.
          expectOutcome(await connection.ended(connection.request(good)), 'taken');
        }
      } finally {
        connection.close();
      }
    });
  }

  it('are answered as docs/HTTP.md documents', async () => {
    const documented = await readFile('docs/HTTP.md', 'utf8');
    const inputs = new Set(SECTIONS.flatMap((section) => section.rows.map(({ input }) => input)));
    expect(Object.keys(HTTP2_ROWS).filter((input) => !inputs.has(input))).to.deep.equal([]);
    for (const { input, gateway, http1 = statusOf(gateway), api = gateway } of SECTIONS.flatMap(
      ({ rows }) => rows,
    )) {
      const http2 = HTTP2_ROWS[input]?.outcome ?? 'n/a';
      expect(documented).to.include(`| ${input} | ${http1} | ${http2} | ${statusOf(api)} |\n`);
    }
    for (const [input, { outcome }] of Object.entries(ONLY_HTTP2))
      expect(documented).to.include(`| ${input} | ${outcome} |\n`);
  });
});
