import { expect } from 'chai';
import fc from 'fast-check';
import { replaceBigIntegers } from '../../src/actors/exact-integers.js';

const quote = (json: string) => replaceBigIntegers(json, (digits) => `"${digits}"`);

describe('replaceBigIntegers', () => {
  for (const [json, replaced] of [
    ['9007199254740991', '9007199254740991'],
    ['9007199254740992', '"9007199254740992"'],
    ['-9007199254740993', '"-9007199254740993"'],
    ['[9007199254740993,{"a":9007199254740993}]', '["9007199254740993",{"a":"9007199254740993"}]'],
    ['"9007199254740993"', '"9007199254740993"'],
    ['"\\"9007199254740993"', '"\\"9007199254740993"'],
    ['"\\\\",9007199254740993', '"\\\\","9007199254740993"'],
    ['0.9007199254740993', '0.9007199254740993'],
    ['9007199254740993.5', '9007199254740993.5'],
    ['9007199254740993e1', '9007199254740993e1'],
    ['1e9007199254740993', '1e9007199254740993'],
  ] as const) {
    it(`makes ${replaced} of ${json}`, () => {
      expect(quote(json)).to.equal(replaced);
    });
  }

  it('leaves all other JSON as it is', () => {
    fc.assert(
      fc.property(fc.json(), (json) => {
        const numbers: number[] = [];
        JSON.parse(json, (_key, value: unknown) => {
          if (typeof value === 'number') numbers.push(value);
          return value;
        });
        fc.pre(numbers.every((number) => !Number.isInteger(number) || Number.isSafeInteger(number)));
        expect(quote(json)).to.equal(json);
      }),
    );
  });
});
