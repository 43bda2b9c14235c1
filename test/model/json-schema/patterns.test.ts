/** What the front is given of patterns, and which are refused. */
import { expect } from 'chai';
import { compilePattern, PatternError } from '../../../src/model/json-schema/patterns.js';

describe('patterns of JSON Schema', () => {
  it('writes a pattern of ECMA-262 as the front reads it, with its weight', () => {
    for (const [source, rust, weight] of [
      ['^a|b$', '^a|b$', 4],
      ['(?<year>\\d{4})-(?:0|1)?', '(?:(?:[0-9]){4})\\x{2d}(?:(?:0|1))?', 14],
      ['a*?b+c{2,}', '(?:a)*?(?:b)+(?:c){2,}', 12],
      ['\\-\\/\\_\\é{x}]', '\\x{2d}\\x{2f}\\x{5f}\\x{e9}\\x{7b}x\\x{7d}\\x{5d}', 8],
      ['[a-\\d][\\d-z][-a][^]', '[a\\x{2d}[0-9]][[0-9]\\x{2d}z][\\x{2d}a][\\x{0}-\\x{10ffff}]', 13],
      ['[\\b-\\t]\\cJ\\0\\x41\\u0042', '[\\x{8}-\\x{9}]\\x{a}\\x{0}AB', 5],
      ['😀\\u{1F600}\\ud83d\\ude00', '\\x{1f600}\\x{1f600}\\x{1f600}', 3],
      ['\\p{Lu}\\P{sc=Grek}', '\\p{General_Category=Lu}\\P{Script=Grek}', 200],
      ['\\bx', '(?-u:\\b)x', 2],
    ] as const)
      expect(compilePattern(source), source).to.deep.equal({ rust, weight });
  });

  it('refuses a pattern that is none, that takes more than linear time, or that is too large', () => {
    for (const [source, message] of [
      ['(a', 'is not one of ECMA-262: Unterminated group'],
      ['a)', "is not one of ECMA-262: Unmatched ')'"],
      ['a**', 'is not one of ECMA-262: Nothing to repeat'],
      ['\\q', 'is not one of ECMA-262: Invalid escape'],
      ['(?i:a)', 'is not one of ECMA-262: Invalid group'],
      ['a(?=b)', 'has look-around, which cannot be evaluated in linear time'],
      ['(a)\\1', 'has a back-reference, which cannot be evaluated in linear time'],
      ['\\B', 'has \\B, which is not supported'],
      ['[]', 'has "[]", which fits nothing'],
      ['\\ud83d', 'has an escape that is no character of Unicode'],
      ['a{20000}', 'repeats more than 10000 times: {20000}'],
      ['(?:a{1000}){20}', 'is too large once its repetitions are written out'],
      [`${'('.repeat(50)}${')'.repeat(50)}`, 'has groups more than 50 levels deep'],
      ['a'.repeat(2001), 'is longer than 2000 characters'],
    ] as const)
      expect(() => compilePattern(source), source).to.throw(PatternError, message);
    for (const property of ['\\p{Alphabetic}', '\\P{digit}'])
      expect(() => compilePattern(`a${property}b`)).to.throw(
        PatternError,
        `has ${property}; only general categories`,
      );
  });
});
