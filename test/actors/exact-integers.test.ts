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
    ['["\\\\",9007199254740993]', '["\\\\","9007199254740993"]'],
    ['0.9007199254740993', '0.9007199254740993'],
    ['9007199254740993.5', '9007199254740993.5'],
    ['9007199254740993e1', '9007199254740993e1'],
    ['1e9007199254740993', '1e9007199254740993'],
  ] as const) {
    it(`replacing big integers makes ${replaced} of the JSON ${json}`, () => {
      expect(quote(json)).to.equal(replaced);
    });
  }

  it('leaves JSON without big integers as it is', () => {
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

  // With quadratic time, each of these would exceed the timeout of mocha.
  describe('replaceBigIntegers with long JSON', () => {
    const LONG = '9007199254740993';
    const MIB = 1024 * 1024;

    for (const [name, text] of [
      ['unclosed quotes', `${LONG}${'"'.repeat(2 * MIB + 1)}`],
      ['unclosed escaped quotes', `${LONG}"${'\\"'.repeat(MIB)}`],
      ['unclosed strings of backslashes', `${LONG}"${'\\'.repeat(2 * MIB)}`],
      ['a number with two points', `${LONG}${'.1'.repeat(MIB)}`],
      ['leading zeros', `0${LONG}`],
    ] as const) {
      it(`refuses JSON with ${name} in linear time`, () => {
        expect(() => quote(text)).to.throw(SyntaxError);
      });
    }

    for (const [name, text] of [
      ['a text of 9 MiB', `"${'x'.repeat(9 * MIB)}"`],
      ['a text of escaped quotes', `"${'\\"'.repeat(4 * MIB)}"`],
      ['a text of backslashes', `"${'\\'.repeat(8 * MIB)}"`],
      ['many texts', `[""${',""'.repeat(2 * MIB)}]`],
      ['a fraction of 9 Mi digits', `0.${'1'.repeat(9 * MIB)}`],
      ['many numbers', `[0${',-12345.678e-1'.repeat(MIB)}]`],
    ] as const) {
      it(`leaves ${name} in JSON as it is, in linear time`, () => {
        expect(quote(`[${text},${LONG}]`) === `[${text},"${LONG}"]`).to.equal(true);
      });
    }

    it('replaces an integer of 9 Mi digits in linear time', () => {
      const digits = '1'.repeat(9 * MIB);
      expect(quote(digits) === `"${digits}"`).to.equal(true);
    });
  });
});
