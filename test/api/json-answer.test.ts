/** Answers that are written in parts are what they would be at once. */
import { Readable } from 'node:stream';
import { expect } from 'chai';
import fc from 'fast-check';
import { jsonInParts, parsedInParts } from '../../src/util/pauses.js';
import { startApi } from '../support/api.js';
import { expectData } from '../support/expect.js';

describe('JSON in parts', () => {
  it('writes any JSON in parts as JSON.stringify does', async () => {
    const value = fc.oneof(
      fc.jsonValue(),
      fc.record({ at: fc.date(), none: fc.constant(undefined), text: fc.string({ unit: 'binary' }) }),
      fc.array(fc.string({ minLength: 100, maxLength: 2_000 }), { minLength: 60, maxLength: 100 }),
    );
    await fc.assert(
      fc.asyncProperty(value, async (any) => {
        expect((await jsonInParts(any)).toString()).to.equal(JSON.stringify(any));
      }),
      { numRuns: 50 },
    );
  });

  it('reads any JSON in parts, wherever its bytes are cut', async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), fc.integer({ min: 1, max: 50 }), async (any, size) => {
        const bytes = Buffer.from(JSON.stringify(any));
        const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
          bytes.subarray(at * size, (at + 1) * size),
        );
        expect(await parsedInParts(Readable.from(pieces))).to.deep.equal(JSON.parse(bytes.toString()));
      }),
      { numRuns: 50 },
    );
    const broken = await parsedInParts(Readable.from([Buffer.from('{"a": ')])).catch(
      (thrown: unknown) => thrown,
    );
    expect(broken).to.be.an('error');
  });

  it('lists many domains with the same answer as few', async () => {
    const api = await startApi();
    try {
      for (let at = 0; at < 60; at++)
        expectData(await api.post('/api/domains', { name: `d${at}`, host: `d${at}.example` }), 201);
      const [many, few] = [await api.get('/api/domains'), await api.get('/api/domains?limit=10')];
      expect(expectData<object[]>(many)).to.have.length(60);
      expect(expectData<object[]>(many).slice(0, 10)).to.deep.equal(expectData(few));
      expect(many.headers['content-type']).to.equal(few.headers['content-type']);
      expect(Number(many.headers['content-length'])).to.be.above(1_000);
    } finally {
      await api.close();
    }
  });
});
