import { expect } from 'chai';
import { BSON } from 'mongodb';
import { encodeExtendedJson, parseExtendedJson } from '../../../src/actors/drivers/mongodb/extended-json.js';

/** As values come from a server: through BSON, with the options of the driver. */
function throughBson(value: unknown): unknown {
  const bytes = BSON.serialize({ value });
  return BSON.deserialize(bytes, { promoteLongs: false, bsonRegExp: true })['value'];
}

describe('Extended JSON of the mongodb driver', () => {
  for (const [name, given, written] of [
    ['nested arrays', '[1,[2,{"a":9007199254740993}]]'],
    ['Decimal128', '{"$numberDecimal":"0.1000000000000000000000000000000001"}'],
    ['infinity', '{"$numberDouble":"Infinity"}'],
    ['NaN', '{"$numberDouble":"NaN"}'],
    ['digits beyond 64 bits, as a double', '10000000000000000000000', '1e+22'],
    ['the largest long', '9223372036854775807'],
    ['one more than the largest long, as a double', '9223372036854775808', '9223372036854776000'],
    ['long digits after a point', '0.12345678901234567890', '0.12345678901234568'],
    ['the smallest key', '{"$minKey":1}'],
    ['the largest key', '{"$maxKey":1}'],
    ['a UUID', '{"$uuid":"00112233-4455-6677-8899-aabbccddeeff"}', /"subType":"04"/],
    ['a reference', '{"$ref":"c","$id":9007199254740993}'],
    ['a reference in another database', '{"$ref":"c","$id":{"$oid":"507f1f77bcf86cd799439011"},"$db":"d"}'],
    ['code', '{"$code":"f()"}'],
    ['a date after year 9999', '{"$date":{"$numberLong":"253402300800000"}}'],
    ['a member called __proto__', '{"__proto__":{"a":1}}'],
  ] as const) {
    it(`keeps ${name} in Extended JSON`, () => {
      const text = encodeExtendedJson(throughBson(parseExtendedJson(given)));
      if (written instanceof RegExp) expect(text).to.match(written);
      else expect(text).to.equal(written ?? given);
    });
  }

  it('writes a document with a member _bsontype as a document in Extended JSON', () => {
    expect(encodeExtendedJson({ _bsontype: 'Long', low: 1 })).to.equal('{"_bsontype":"Long","low":1}');
  });
});
