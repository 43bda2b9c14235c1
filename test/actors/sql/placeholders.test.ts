import { expect } from 'chai';
import fc from 'fast-check';
import { ServiceError } from '../../../src/actors/service-error.js';
import { checkParamCount, scanSql } from '../../../src/actors/sql/placeholders.js';

describe('placeholders of SQL statements', () => {
  const cases: readonly (readonly [sql: string, placeholders: number])[] = [
    ["? '?' \"?\" `?` 'it\\'s ?' \"a\\\"?\" 'it''s ?'", 1],
    ['# ?\n-- ?\n/* ? */ ? --?', 2],
    ['/*! ? */ /*!50000 ? */ /*M! ? */', 3],
    ['$1 :a @b ??', 2],
  ];
  for (const [sql, placeholders] of cases) {
    it(`the statement ${JSON.stringify(sql)} has ${placeholders} placeholders`, () => {
      const scanned = scanSql(sql);
      expect(scanned.placeholders).to.equal(placeholders);
      expect(scanSql(sql)).to.equal(scanned);
    });
  }

  const words: readonly (readonly [string, string])[] = [
    ['/*!50001 start */ transaction', 'START TRANSACTION'],
    ['#x\ncommit', 'COMMIT'],
    ['--\x7fselect\nset', 'SET'],
    ['-- \rselect\nset', 'SET'],
  ];
  for (const [sql, expected] of words) {
    it(`the statement ${JSON.stringify(sql)} begins with ${expected}`, () => {
      expect(scanSql(sql).words.join(' ')).to.equal(expected);
    });
  }

  it('reports the numbers of placeholders and parameters when they differ', () => {
    const scanned = scanSql('SELECT ?');
    checkParamCount(scanned, 1);
    expect(() => checkParamCount(scanned, 2))
      .to.throw(ServiceError, 'the statement has 1 placeholder but 2 parameters came with it')
      .with.property('kind', 'invalid');
  });

  /** Parts of a statement that contain question marks, with the number of placeholders outside of them. */
  const inner = fc.stringMatching(/^[ a-z?$:@0-9]{0,8}$/);
  const quote = (open: string, close: string) => inner.map((text) => [`${open}${text}${close}`, 0] as const);
  const hidden = fc.oneof(
    fc.constantFrom([' ? ', 1] as const, [' word ', 0] as const, [' , ', 0] as const),
    ...[quote("'", "'"), quote('"', '"'), quote('/* ', '*/'), quote('-- ', '\n')],
    ...[quote('`', '`'), quote("'\\'", "'"), quote('# ', '\n')],
  );
  it('counts only placeholders outside of strings, names and comments', () => {
    fc.assert(
      fc.property(fc.array(hidden, { maxLength: 12 }), (pieces) => {
        const sql = pieces.map(([text]) => text).join(' ');
        expect(scanSql(sql).placeholders).to.equal(pieces.reduce((sum, [, n]) => sum + n, 0));
      }),
    );
  });

  it('scans any text to its end for placeholders', () => {
    const text = fc.string({ unit: fc.constantFrom(...'\'"`[]$?:@\\/*-#!\n aE1;{}') });
    fc.assert(
      fc.property(text, (sql) => {
        expect(scanSql(sql).placeholders).to.be.at.least(0);
      }),
      { numRuns: 1_000 },
    );
  });

  it('scans a long statement for placeholders quickly', () => {
    const sql = `SELECT ${"?, 'x', ".repeat(60_000)} '${'a'.repeat(5_000_000)}'`;
    expect(scanSql(sql).placeholders).to.equal(60_000);
  });
});
