import { expect } from 'chai';
import fc from 'fast-check';
import { ServiceError } from '../../../src/actors/service-error.js';
import { scanSql } from '../../../src/actors/sql/placeholders.js';
import { refuseStateChange } from '../../../src/actors/sql/refused-statements.js';
import { ResultText } from '../../../src/actors/sql/result-text.js';
import { JsonText, parseStatement } from '../../../src/actors/sql/statement.js';

describe('statements of handlers', () => {
  const parse = (value: unknown) => parseStatement(Buffer.from(JSON.stringify(value)));

  it('reads a statement with parameters of every kind', () => {
    const params = [null, true, 1.5, 'text', { int: '-9007199254740993' }, { blob: 'AP8=' }, { json: '[1]' }];
    expect(parse({ sql: 'x', params })).to.deep.equal({
      sql: 'x',
      params: [null, true, 1.5, 'text', -9007199254740993n, Buffer.from([0, 255]), new JsonText('[1]')],
    });
    expect(parse({ sql: 'x' }).params).to.deep.equal([]);
  });

  const wrong: readonly (readonly [value: unknown, message: RegExp])[] = [
    [null, /must be an object/],
    [[], /must be an object/],
    [{}, /payload\.sql: /],
    [{ sql: 1 }, /payload\.sql: /],
    [{ sql: 'a\u0000b' }, /U\+0000/],
    [{ sql: '', params: {} }, /payload\.params: must be an array/],
    [{ sql: '', parms: [] }, /payload\.parms: is not accepted/],
    [{ sql: '', params: [1, []] }, /payload\.params\[1\]: must be/],
    [{ sql: '', params: [{}] }, /payload\.params\[0\]: must be/],
    [{ sql: '', params: [{ int: 5 }] }, /payload\.params\[0\]: must be/],
    [{ sql: '', params: [{ int: '1.5' }] }, /payload\.params\[0\]: must be/],
    [{ sql: '', params: [{ int: '1'.repeat(1000) }] }, /payload\.params\[0\]: must be/],
    [{ sql: '', params: [{ blob: 'a' }] }, /payload\.params\[0\]: must be/],
    [{ sql: '', params: [{ blob: 'a*b=' }] }, /payload\.params\[0\]: must be/],
    [{ sql: '', params: [{ int: '1', json: '1' }] }, /payload\.params\[0\]: must be/],
    [{ sql: '', params: [{ toString: 'x' }] }, /payload\.params\[0\]: must be/],
  ];
  for (const [value, message] of wrong) {
    it(`refuses the statement ${JSON.stringify(value).slice(0, 60)}`, () => {
      expect(() => parse(value))
        .to.throw(ServiceError, message)
        .with.property('kind', 'invalid');
    });
  }

  it('refuses a statement that is not JSON', () => {
    expect(() => parseStatement(Buffer.from('{'))).to.throw(ServiceError, /must be JSON/);
  });

  it('keeps integers and bytes of parameters exactly', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n - 1n }), fc.uint8Array(), (int, bytes) => {
        const blob = Buffer.from(bytes);
        const { params } = parse({
          sql: '',
          params: [{ int: String(int) }, { blob: blob.toString('base64') }],
        });
        expect(params).to.deep.equal([int, blob]);
      }),
    );
  });

  it('allows statements of savepoints within a transaction only, and never COMMIT or SET', () => {
    const refuse = (sql: string, inTransaction: boolean) => () =>
      refuseStateChange(scanSql(sql), inTransaction);
    for (const sql of ['SAVEPOINT a', 'ROLLBACK TO a', 'ROLLBACK WORK TO SAVEPOINT a', 'RELEASE a']) {
      expect(refuse(sql, false), sql).to.throw(ServiceError);
      expect(refuse(sql, true), sql).to.not.throw();
    }
    for (const sql of ['COMMIT', 'SET x = 1', 'SET SESSION x = 1', 'ROLLBACK']) {
      expect(refuse(sql, true), sql).to.throw(ServiceError, 'is not possible here');
    }
    for (const sql of ['SELECT 1', 'UPDATE t SET a = 1', 'WITH a AS (SELECT 1) SELECT 1', '']) {
      expect(refuse(sql, false), sql).to.not.throw();
    }
  });
});

describe('texts of results', () => {
  it('writes the result of a statement as JSON', () => {
    const text = new ResultText(['a', '"']);
    expect(text.addRow('1,2')).to.equal(true);
    expect(text.addRow('null,"x"')).to.equal(true);
    expect(JSON.parse(text.finish(3, '4'))).to.deep.equal({
      ...{
        columns: ['a', '"'],
        rows: [
          [1, 2],
          [null, 'x'],
        ],
        rows_affected: 3,
        last_insert_id: 4,
      },
    });
  });

  it('refuses the result of a statement by its bytes, not by its characters', () => {
    const text = new ResultText(['a']);
    expect(text.addRow(`"${'ü'.repeat(34_000_000)}"`)).to.equal(true);
    expect(() => text.finish(0)).to.throw(ServiceError, 'larger than 64 MiB');
  });
});
