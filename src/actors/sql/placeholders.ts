/**
 * Finds the placeholders and the first words of a statement as SQLite and MySQL read SQL: outside of strings, quoted
 * names and comments. It does not validate the statement; the database does. `rust/postgres-service` has the same for
 * PostgreSQL.
 */
import { ServiceError } from '../service-error.js';

export type SqlDialect = 'sqlite' | 'mysql';

/** A scanned statement, as it is sent to the database. */
export interface ScannedSql {
  readonly sql: string;
  /** Number of parameters. */
  readonly placeholders: number;
  /** The first words outside strings and comments, in upper case. */
  readonly words: readonly string[];
  /** SQLite: number of statements. The body of a trigger is part of its statement. */
  readonly statements: 'none' | 'one' | 'several';
  /** MySQL: whether it has a comment that servers may execute. */
  readonly hasExecutableComment: boolean;
}

/** Number of words needed to recognise a statement. */
const WORDS = 6;
/** Limits of the cache of scans, per database: handlers repeat few and short statements. */
const REMEMBERED = 1_000;
const REMEMBERED_LENGTH = 20_000;

const remembered: Readonly<Record<SqlDialect, Map<string, ScannedSql>>> = {
  sqlite: new Map(),
  mysql: new Map(),
};

/** Scans a statement; results are cached. */
export function scanSql(sql: string, dialect: SqlDialect): ScannedSql {
  const known = remembered[dialect];
  const before = known.get(sql);
  if (before) return before;
  const scanned = new Scanner(sql, dialect).scan();
  if (sql.length <= REMEMBERED_LENGTH) {
    const [oldest] = known.size < REMEMBERED ? [] : known.keys();
    if (oldest !== undefined) known.delete(oldest);
    known.set(sql, scanned);
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

interface Placeholder {
  readonly start: number;
  readonly end: number;
  /** Its text: `?`, `?1`, `:name`. */
  readonly name: string;
}

class Scanner {
  readonly #sql: string;
  readonly #dialect: SqlDialect;
  readonly #words: string[] = [];
  readonly #found: Placeholder[] = [];
  #hasExecutableComment = false;
  #statements: ScannedSql['statements'] = 'none';
  #isEnded = false;

  constructor(sql: string, dialect: SqlDialect) {
    this.#sql = sql;
    this.#dialect = dialect;
  }

  scan(): ScannedSql {
    for (let at = 0; at < this.#sql.length; ) {
      const end = this.#tokenEnd(at);
      if (this.#dialect === 'sqlite') this.#countStatement(at, end);
      at = end;
    }
    return this.#dialect === 'sqlite' ? this.#sqlite() : this.#result(this.#sql, this.#found.length);
  }

  /** The end of the token that begins at `at`. */
  #tokenEnd(at: number): number {
    const sql = this.#sql;
    const dialect = this.#dialect;
    switch (sql.charAt(at)) {
      case "'":
        return dialect === 'mysql' ? this.#escapedEnd(at) : this.#behind("'", at + 1);
      case '"':
        return dialect === 'mysql' ? this.#escapedEnd(at) : this.#behind('"', at + 1);
      case '`':
        return this.#behind('`', at + 1);
      case '[':
        return dialect === 'sqlite' ? this.#behind(']', at + 1) : at + 1;
      case '#':
        return dialect === 'mysql' ? this.#behind('\n', at + 1) : at + 1;
      case '-':
        return this.#isLineComment(at) ? this.#behind('\n', at) : at + 1;
      case '/':
        return sql.charAt(at + 1) === '*' ? this.#commentEnd(at) : at + 1;
      case '?':
        return this.#placeholder(at, dialect === 'sqlite' ? digitsEnd(sql, at + 1) : at + 1);
      case '$':
      case ':':
      case '@':
        return this.#named(at);
      default:
        return isNameStart(sql.charCodeAt(at)) && !this.#isByteOrderMark(at) ? this.#word(at) : at + 1;
    }
  }

  #countStatement(start: number, end: number): void {
    if (this.#statements === 'several') return;
    const character = this.#sql.charAt(start);
    const isComment = end - start > 1 && (character === '-' || character === '/');
    if (isComment || /\s/.test(character)) return;
    if (character !== ';') this.#statements = this.#isEnded ? 'several' : 'one';
    else this.#isEnded = this.#statements === 'one' && !this.#isTrigger();
  }

  #isTrigger(): boolean {
    const [first, second, third] = this.#words;
    return first === 'CREATE' && (second === 'TRIGGER' || third === 'TRIGGER');
  }

  /** SQLite treats it as whitespace, except within a name. */
  #isByteOrderMark(at: number): boolean {
    return this.#dialect === 'sqlite' && this.#sql.charCodeAt(at) === 0xfeff;
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
    if (this.#dialect !== 'mysql') return true;
    // MySQL requires a blank, a control character or the end after it: 1--1 is a subtraction.
    const next = this.#sql.charCodeAt(at + 2);
    return !(next > 0x20) || next === 0x7f;
  }

  #commentEnd(start: number): number {
    // The content of such a comment is executed; its end is skipped as punctuation.
    const executable = this.#dialect === 'mysql' ? match(/\/\*M?!\d*/y, this.#sql, start) : undefined;
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

  /** SQLite: `:name`, `@name`, `$name`; elsewhere punctuation. */
  #named(at: number): number {
    const end = nameEnd(this.#sql, at + 1);
    return this.#dialect === 'sqlite' && end > at + 1 ? this.#placeholder(at, end) : at + 1;
  }

  #placeholder(start: number, end: number): number {
    this.#found.push({ start, end, name: this.#sql.slice(start, end) });
    return end;
  }

  /**
   * Numbers as SQLite assigns them: a name keeps its number, and a new parameter gets the highest so far plus one.
   */
  #sqlite(): ScannedSql {
    if (this.#found.every(({ name }) => name === '?')) return this.#result(this.#sql, this.#found.length);
    const numbers = new Map<string, number>();
    let highest = 0;
    let sql = '';
    let copied = 0;
    for (const { start, end, name } of this.#found) {
      const given = name.startsWith('?') && name.length > 1 ? Number(name.slice(1)) : numbers.get(name);
      const number = given ?? highest + 1;
      if (name !== '?') numbers.set(name, number);
      highest = Math.max(highest, number);
      sql += `${this.#sql.slice(copied, start)}?${number}`;
      copied = end;
    }
    return this.#result(sql + this.#sql.slice(copied), highest);
  }

  #result(sql: string, placeholders: number): ScannedSql {
    const words = this.#words;
    const hasExecutableComment = this.#hasExecutableComment;
    const statements = this.#dialect === 'sqlite' ? this.#statements : 'one';
    return { sql, placeholders, words, statements, hasExecutableComment };
  }
}

/** The match of a sticky pattern at a position. */
function match(pattern: RegExp, sql: string, at: number): string | undefined {
  pattern.lastIndex = at;
  return pattern.exec(sql)?.[0];
}

function digitsEnd(sql: string, start: number): number {
  let end = start;
  while (isDigit(sql.charCodeAt(end))) end++;
  return end;
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
