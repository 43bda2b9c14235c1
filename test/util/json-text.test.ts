/** JSON of what is long, piece by piece. */
import { expect } from 'chai';
import fc from 'fast-check';
import { groupsOf, jsonSize, LongText, piecesOfJson, piecesOfText } from '../../src/util/json-text.js';

describe('JSON of what is long', () => {
  const anything = fc.oneof(
    fc.jsonValue(),
    fc.record({
      at: fc.date({ noInvalidDate: true }),
      none: fc.constant(undefined),
      text: fc.string({ unit: 'binary', maxLength: 200 }),
      lists: fc.array(fc.array(fc.jsonValue())),
      long: fc.array(fc.string({ unit: 'grapheme', maxLength: 50 })).map((pieces) => new LongText(pieces)),
    }),
    fc.dictionary(fc.string(), fc.oneof(fc.constant(undefined), fc.jsonValue())),
  );

  it('is in all pieces together what JSON.stringify writes, wherever it is taken apart', () => {
    fc.assert(
      fc.property(anything, fc.integer({ min: 1, max: 100 }), (value, most) => {
        expect([...piecesOfJson(value, most)].join('')).to.equal(JSON.stringify(value));
      }),
    );
  });

  it('has pieces that are about as long as was asked for', () => {
    const value = { long: 'é😀\n'.repeat(10_000), many: Array.from({ length: 10_000 }, (_, at) => ({ at })) };
    const pieces = [...piecesOfJson(value, 1_000)];
    expect(pieces.join('')).to.equal(JSON.stringify(value));
    expect(Math.max(...pieces.map(({ length }) => length))).to.be.below(2_100);
  });

  it('has members in groups that are in their order, where a long one is alone', () => {
    const value = { a: 1, b: 'x'.repeat(100), c: 2, d: 3 };
    expect([...groupsOf(value, 50)]).to.deep.equal([
      { members: [['a', 1]], isLong: false },
      { members: [['b', value.b]], isLong: true },
      {
        members: [
          ['c', 2],
          ['d', 3],
        ],
        isLong: false,
      },
    ]);
  });

  it('is not counted further than asked for, however long it is', () => {
    const members = Array.from({ length: 100 }, () => ({ text: 'x'.repeat(100) }));
    const text = JSON.stringify(members);
    expect(jsonSize(members, 1_000_000)).to.be.within(text.length, text.length * 1.2);
    expect(jsonSize(members, 500)).to.be.within(501, 1_000);
  });

  it('text in pieces has all of its characters, none of them in two pieces', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.integer({ min: 1, max: 9 }), (text, length) => {
        const pieces = [...piecesOfText(text, length)];
        expect(pieces.join('')).to.equal(text);
        for (const piece of pieces) expect(Buffer.from(piece).toString()).to.equal(piece);
      }),
    );
  });
});
