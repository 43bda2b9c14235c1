/**
 * Finds the placeholders and the first words of a statement as MySQL reads SQL: outside of strings, quoted names and
 * comments. It does not validate the statement; the database does. `rust/` has the same for PostgreSQL.
 */
import { ServiceError } from '../service-error.js';

export interface ScannedSql {
  /** Number of parameters. */
  readonly placeholders: number;
  /** The first words outside strings and comments, in upper case. */
  readonly words: readonly string[];
  /** Whether it has a comment that servers may execute. */
  readonly hasExecutableComment: boolean;
}

/** Number of words needed to recognise a statement. */
const WORDS = 3;
/** Limits of the cache of scans: handlers repeat few and short statements. */
const REMEMBERED = 1_000;
const REMEMBERED_LENGTH = 20_000;

const remembered = new Map<string, ScannedSql>();

/** Scans a statement; results are cached. */
export function scanSql(sql: string): ScannedSql {
  const before = remembered.get(sql);
  if (before) return before;
  const scanned = new Scanner(sql).scan();
  if (sql.length <= REMEMBERED_LENGTH) {
    const [oldest] = remembered.size < REMEMBERED ? [] : remembered.keys();
    if (oldest !== undefined) remembered.delete(oldest);
    remembered.set(sql, scanned);
  }
  return scanned;
}

/**
 * Checks that the numbers of placeholders and parameters match.
 * @throws ServiceError `invalid` with both
 */
export function checkParamCount(scanned: ScannedSql, params: number): void {
  if (scanned.placeholders === params) return;
  throw new ServiceError(
    'invalid',
    `the statement has ${count(scanned.placeholders, 'placeholder')} but ${count(params, 'parameter')} came with it`,
  );
}

function count(n: number, thing: string): string {
  return `${n} ${thing}${n === 1 ? '' : 's'}`;
}

class Scanner {
  readonly #sql: string;
  readonly #words: string[] = [];
  #placeholders = 0;
  #hasExecutableComment = false;

  constructor(sql: string) {
    this.#sql = sql;
  }

  scan(): ScannedSql {
    for (let at = 0; at < this.#sql.length; ) at = this.#tokenEnd(at);
    return {
      placeholders: this.#placeholders,
      words: this.#words,
      hasExecutableComment: this.#hasExecutableComment,
    };
  }

  /** The end of the token that begins at `at`. */
  #tokenEnd(at: number): number {
    const sql = this.#sql;
    switch (sql.charAt(at)) {
      case "'":
      case '"':
        return this.#escapedEnd(at);
      case '`':
        return this.#behind('`', at + 1);
      case '#':
        return this.#behind('\n', at + 1);
      case '-':
        return this.#isLineComment(at) ? this.#behind('\n', at) : at + 1;
      case '/':
        return sql.charAt(at + 1) === '*' ? this.#commentEnd(at) : at + 1;
      case '?':
        this.#placeholders++;
        return at + 1;
      default:
        return isNameStart(sql.charCodeAt(at)) ? this.#word(at) : at + 1;
    }
  }

  /** The position after the next `end`. A doubled quote is read as two adjacent strings, which is equivalent here. */
  #behind(end: string, from: number): number {
    const index = this.#sql.indexOf(end, from);
    return index < 0 ? this.#sql.length : index + end.length;
  }

  /** The end of the string with backslash escapes whose quote is at `start`. */
  #escapedEnd(start: number): number {
    const sql = this.#sql;
    const quote = sql.charAt(start);
    let at = start + 1;
    while (at < sql.length && sql.charAt(at) !== quote) at += sql.charAt(at) === '\\' ? 2 : 1;
    return at + 1;
  }

  #isLineComment(at: number): boolean {
    if (this.#sql.charAt(at + 1) !== '-') return false;
    // MySQL requires a blank, a control character or the end after it: 1--1 is a subtraction.
    const next = this.#sql.charCodeAt(at + 2);
    return !(next > 0x20) || next === 0x7f;
  }

  #commentEnd(start: number): number {
    // The content of such a comment is executed; its end is skipped as punctuation.
    const executable = match(/\/\*M?!\d*/y, this.#sql, start);
    if (executable === undefined) return this.#behind('*/', start + 2);
    this.#hasExecutableComment = true;
    return start + executable.length;
  }

  #word(start: number): number {
    const sql = this.#sql;
    const end = nameEnd(sql, start);
    const word = sql.slice(start, end).toUpperCase();
    if (this.#words.length < WORDS) this.#words.push(word);
    return end;
  }
}

/** The match of a sticky pattern at a position. */
function match(pattern: RegExp, sql: string, at: number): string | undefined {
  pattern.lastIndex = at;
  return pattern.exec(sql)?.[0];
}

function nameEnd(sql: string, start: number): number {
  let end = start;
  while (isNamePart(sql.charCodeAt(end))) end++;
  return end;
}

function isNameStart(code: number): boolean {
  return (code >= 0x61 && code <= 0x7a) || (code >= 0x41 && code <= 0x5a) || code === 0x5f || code >= 0x80;
}

function isNamePart(code: number): boolean {
  return isNameStart(code) || isDigit(code) || code === 0x24;
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}
