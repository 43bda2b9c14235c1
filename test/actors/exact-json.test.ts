import { expect } from 'chai';
import fc from 'fast-check';
import { encodeJson, RawJson } from '../../src/actors/exact-json.js';

describe('exact JSON', () => {
  it('encodes any JSON value as JSON.stringify does', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        // Normalizes -0, which both write as 0.
        expect(JSON.parse(encodeJson(value))).to.deep.equal(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  it('writes integers of any size exactly into JSON', () => {
    fc.assert(
      fc.property(fc.bigInt(), (value) => {
        expect(encodeJson({ value })).to.equal(`{"value":${value}}`);
      }),
    );
  });

  const cases: [value: unknown, text: string][] = [
    [Number.NaN, '"NaN"'],
    [-Infinity, '"-Infinity"'],
    [undefined, 'null'],
    [{ a: undefined, b: 1 }, '{"b":1}'],
    [[undefined], '[null]'],
    [new RawJson('{"n":12345678901234567890}'), '{"n":12345678901234567890}'],
    [Buffer.from([0, 255]), '"AP8="'],
    [new Date(0), '"1970-01-01T00:00:00.000Z"'],
    ['"\u2028\n\ud800', JSON.stringify('"\u2028\n\ud800')],
  ];
  for (const [value, text] of cases) {
    it(`encodes a special value as ${text} in JSON`, () => {
      expect(encodeJson(value)).to.equal(text);
    });
  }
});
