import { expect } from 'chai';
import fc from 'fast-check';
import { ServiceError } from '../../../src/actors/service-error.js';
import { checkParamCount, type SqlDialect, scanSql } from '../../../src/actors/sql/placeholders.js';

describe('placeholders of SQL statements', () => {
  const cases: readonly (readonly [SqlDialect, sql: string, placeholders: number, sent?: string])[] = [
    ['mysql', "? '?' \"?\" `?` 'it\\'s ?' \"a\\\"?\" 'it''s ?'", 1],
    ['mysql', '# ?\n-- ?\n/* ? */ ? --?', 2],
    ['mysql', '/*! ? */ /*!50000 ? */ /*M! ? */', 3],
    ['mysql', '$1 :a @b ??', 2],
    ['sqlite', '? \'?\' "?" `?` [?] -- ?\n /* ? /* */ ?', 2],
    ['sqlite', '?2 + ?', 3, '?2 + ?3'],
    ['sqlite', ':a + @a + $a + :a + ?', 4, '?1 + ?2 + ?3 + ?1 + ?4'],
    ['sqlite', "a$1 'b' ?", 1],
  ];
  for (const [dialect, sql, placeholders, sent = sql] of cases) {
    it(`${dialect}: ${JSON.stringify(sql)} has ${placeholders}`, () => {
      const scanned = scanSql(sql, dialect);
      expect(scanned.placeholders).to.equal(placeholders);
      expect(scanned.sql).to.equal(sent);
      expect(scanSql(sql, dialect)).to.equal(scanned);
    });
  }

  const words: readonly (readonly [SqlDialect, string, string])[] = [
    ['mysql', '/*!50001 start */ transaction', 'START TRANSACTION'],
    ['mysql', '#x\ncommit', 'COMMIT'],
    ['sqlite', '( select 1 )', 'SELECT'],
    ['sqlite', '\ufeff /**/\ufeffbegin', 'BEGIN'],
    ['sqlite', 'a\ufeff', 'A\ufeff'],
    ['sqlite', '--\rselect\nbegin', 'BEGIN'],
    ['mysql', '--\x7fselect\nset', 'SET'],
    ['mysql', '-- \rselect\nset', 'SET'],
  ];
  for (const [dialect, sql, expected] of words) {
    it(`${dialect}: ${JSON.stringify(sql)} begins with ${expected}`, () => {
      expect(scanSql(sql, dialect).words.join(' ')).to.equal(expected);
    });
  }

  it('reports both numbers when they differ', () => {
    const scanned = scanSql('SELECT ?', 'mysql');
    checkParamCount(scanned, 1);
    expect(() => checkParamCount(scanned, 2))
      .to.throw(ServiceError, 'the statement has 1 placeholder but 2 parameters came with it')
      .with.property('kind', 'invalid');
  });

  /** Parts of a statement that contain question marks, with the number of placeholders outside of them. */
  const hidden = (dialect: SqlDialect) => {
    const inner = fc.stringMatching(/^[ a-z?$:@0-9]{0,8}$/);
    const quote = (open: string, close: string) =>
      inner.map((text) => [`${open}${text}${close}`, 0] as const);
    return fc.oneof(
      fc.constantFrom([' ? ', 1] as const, [' word ', 0] as const, [' , ', 0] as const),
      quote("'", "'"),
      quote('"', '"'),
      quote('/* ', '*/'),
      quote('-- ', '\n'),
      ...(dialect === 'mysql' ? [quote('`', '`'), quote("'\\'", "'"), quote('# ', '\n')] : []),
      ...(dialect === 'sqlite' ? [quote('`', '`'), quote('[', ']')] : []),
    );
  };
  for (const dialect of ['sqlite', 'mysql'] as const) {
    it(`${dialect}: only those outside of strings, names and comments count`, () => {
      fc.assert(
        fc.property(fc.array(hidden(dialect), { maxLength: 12 }), (pieces) => {
          const sql = pieces.map(([text]) => text).join(' ');
          const expected = pieces.reduce((sum, [, n]) => sum + n, 0);
          const scanned = scanSql(sql, dialect);
          expect(scanned.placeholders).to.equal(expected);
          expect(scanned.sql).to.equal(sql);
        }),
      );
    });

    it(`${dialect}: scans any text to its end`, () => {
      const text = fc.string({ unit: fc.constantFrom(...'\'"`[]$?:@\\/*-#!\n aE1;{}') });
      fc.assert(
        fc.property(text, (sql) => {
          const scanned = scanSql(sql, dialect);
          expect(scanned.placeholders).to.be.at.least(0);
          if (scanned.placeholders === 0) expect(scanned.sql).to.equal(sql);
        }),
        { numRuns: 1_000 },
      );
    });
  }

  it('scans long statements quickly', () => {
    const sql = `SELECT ${"?, 'x', ".repeat(60_000)} '${'a'.repeat(5_000_000)}'`;
    for (const dialect of ['sqlite', 'mysql'] as const) {
      expect(scanSql(sql, dialect).placeholders).to.equal(60_000);
    }
  });
});
