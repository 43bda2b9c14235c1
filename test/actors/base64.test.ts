import { expect } from 'chai';
import fc from 'fast-check';
import { decodeBase64 } from '../../src/actors/operations.js';

describe('decodeBase64', () => {
  it('decodes the base64 of any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
        expect(decodeBase64(Buffer.from(bytes).toString('base64'))).to.deep.equal(Buffer.from(bytes));
      }),
    );
  });

  for (const text of [
    'a',
    'ab',
    'abc',
    'ab=',
    '====',
    'a===',
    '!!!!',
    'ab c',
    'abcd\n',
    'ab==abcd',
    'QUJD=',
    'äöüß',
  ]) {
    it(`refuses ${JSON.stringify(text)} as base64`, () => {
      expect(decodeBase64(text)).to.equal(undefined);
    });
  }
});
