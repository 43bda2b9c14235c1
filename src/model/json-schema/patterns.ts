/**
 * Patterns of ECMA-262 as the front evaluates them: in the syntax of a library that takes linear time for any text.
 * What such a library cannot do (look-around, back-references) is refused.
 */

/** A pattern for the front. */
export interface CompiledPattern {
  /** In the syntax of the crate `regex`. */
  readonly rust: string;
  /** How large its automaton gets, roughly: characters, each as often as it is repeated. */
  readonly weight: number;
}

/** Why a pattern cannot be used. */
export class PatternError extends Error {
  override readonly name = 'PatternError';
}

const MAX_LENGTH = 2000;
const MAX_DEPTH = 50;
const MAX_WEIGHT = 10_000;
const MAX_REPEAT = 10_000;

const DIGITS = '0-9';
const WORD = '0-9A-Za-z_';
const SPACE =
  '\\t\\n\\x{b}\\x{c}\\r\\x{20}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}\\x{feff}';
const CLASSES: Readonly<Record<string, string>> = {
  ...{ d: `[${DIGITS}]`, D: `[^${DIGITS}]`, w: `[${WORD}]`, W: `[^${WORD}]` },
  ...{ s: `[${SPACE}]`, S: `[^${SPACE}]` },
};
const CONTROLS: Readonly<Record<string, number>> = { t: 9, n: 10, v: 11, f: 12, r: 13 };
const ANY_BUT_LINE_ENDS = '[^\\n\\r\\x{2028}\\x{2029}]';
const ANY = '[\\x{0}-\\x{10ffff}]';
/** Of characters beyond ASCII, which are several bytes. */
const CLASS_WEIGHT = 8;
const PROPERTY_WEIGHT = 100;
/** General categories, and scripts: what the front knows. Other properties have names of the same form. */
const PROPERTY = /^(?:(?:gc|General_Category)=)?([A-Z][A-Za-z_]*)$|^(?:sc|Script)=([A-Z][A-Za-z_]*)$/;

/** @throws PatternError */
export function compilePattern(source: string): CompiledPattern {
  if (source.length > MAX_LENGTH) throw new PatternError(`is longer than ${MAX_LENGTH} characters`);
  const compiled = new Parser(source).parse();
  if (compiled.weight > MAX_WEIGHT)
    throw new PatternError('is too large once its repetitions are written out');
  return compiled;
}

class Parser {
  /** By code points. */
  readonly #characters: readonly string[];
  #at = 0;
  #depth = 0;

  constructor(source: string) {
    this.#characters = [...source];
  }

  parse(): CompiledPattern {
    const whole = this.#alternatives();
    if (this.#at < this.#characters.length) throw new PatternError('has a ")" without its "("');
    return whole;
  }

  get #next(): string | undefined {
    return this.#characters[this.#at];
  }

  #take(text: string): boolean {
    const fits = [...text].every((character, at) => this.#characters[this.#at + at] === character);
    if (fits) this.#at += text.length;
    return fits;
  }

  #alternatives(): CompiledPattern {
    this.#depth++;
    if (this.#depth > MAX_DEPTH) throw new PatternError(`has groups more than ${MAX_DEPTH} levels deep`);
    const parts: string[] = [];
    let weight = 0;
    while (this.#next !== undefined && this.#next !== ')') {
      if (this.#take('|')) {
        parts.push('|');
        continue;
      }
      const term = this.#term();
      parts.push(term.rust);
      weight += term.weight;
    }
    this.#depth--;
    return { rust: parts.join(''), weight };
  }

  #term(): CompiledPattern {
    const assertion = this.#assertion();
    const atom = assertion ?? this.#atom();
    const repeated = this.#quantifier(atom);
    if (assertion && repeated !== atom) throw new PatternError('repeats what is no character');
    return repeated;
  }

  #assertion(): CompiledPattern | undefined {
    if (this.#take('^')) return { rust: '^', weight: 1 };
    if (this.#take('$')) return { rust: '$', weight: 1 };
    if (this.#take('\\b')) return { rust: '(?-u:\\b)', weight: 1 };
    if (this.#take('\\B')) throw new PatternError('has \\B, which is not supported');
    return undefined;
  }

  #atom(): CompiledPattern {
    const character = this.#next ?? '';
    if (character === '(') return this.#group();
    if (character === '[') return this.#class();
    if (character === '.') {
      this.#at++;
      return { rust: ANY_BUT_LINE_ENDS, weight: CLASS_WEIGHT };
    }
    if (character === '\\') {
      const escaped = this.#escape(false);
      return typeof escaped === 'number' ? { rust: literal(escaped), weight: 1 } : escaped;
    }
    if (
      '*+?'.includes(character) ||
      (character === '{' && /^\{\d+(,\d*)?\}/.test(this.#characters.slice(this.#at, this.#at + 20).join('')))
    )
      throw new PatternError(`has "${character}" with nothing to repeat`);
    this.#at++;
    return { rust: literal(character.codePointAt(0) ?? 0), weight: 1 };
  }

  #group(): CompiledPattern {
    if (['(?=', '(?!', '(?<=', '(?<!'].some((start) => this.#take(start)))
      throw new PatternError('has look-around, which cannot be evaluated in linear time');
    if (!this.#take('(?:')) {
      this.#take('(');
      if (this.#take('?<')) while (this.#next !== undefined && !this.#take('>')) this.#at++;
      else if (this.#next === '?') throw new PatternError('has a group of an unknown kind, "(?"');
    }
    const inner = this.#alternatives();
    if (!this.#take(')')) throw new PatternError('has a "(" without its ")"');
    return { rust: `(?:${inner.rust})`, weight: inner.weight + 1 };
  }

  #quantifier(atom: CompiledPattern): CompiledPattern {
    const [sign, times] = this.#repetition();
    if (sign === '') return atom;
    const lazy = this.#take('?') ? '?' : '';
    const next = this.#next ?? '';
    if (next !== '' && '*+?'.includes(next)) throw new PatternError(`has "${next}" with nothing to repeat`);
    // A group, or the library would take it for a repetition of another kind.
    return { rust: `(?:${atom.rust})${sign}${lazy}`, weight: (atom.weight + 1) * times };
  }

  /** As it is written, and how often it repeats in the automaton. */
  #repetition(): readonly [string, number] {
    for (const sign of ['*', '+', '?']) if (this.#take(sign)) return [sign, sign === '+' ? 2 : 1];
    const rest = this.#characters.slice(this.#at, this.#at + 20).join('');
    const [whole, least = '', open, most = ''] = /^\{(\d{1,8})(,(\d{0,8}))?\}/.exec(rest) ?? [];
    if (whole === undefined) return ['', 1];
    const [from, to] = [
      Number(least),
      most === '' ? Number(least) + (open === undefined ? 0 : 1) : Number(most),
    ];
    if (to > MAX_REPEAT) throw new PatternError(`repeats more than ${MAX_REPEAT} times: ${whole}`);
    if (from > to) throw new PatternError(`has a repetition with the numbers out of order: ${whole}`);
    this.#at += whole.length;
    return [whole, Math.max(1, to)];
  }

  #class(): CompiledPattern {
    this.#take('[');
    const isNegated = this.#take('^');
    let members = '';
    let weight = isNegated ? CLASS_WEIGHT : 1;
    for (;;) {
      if (this.#next === undefined) throw new PatternError('has a "[" without its "]"');
      if (this.#take(']')) break;
      const from = this.#member();
      const isRange =
        this.#next === '-' &&
        ![undefined, ']'].includes(this.#characters[this.#at + 1]) &&
        typeof from === 'number';
      if (!isRange) {
        members += typeof from === 'number' ? literal(from) : from.rust;
        weight += typeof from === 'number' ? Number(from > 127) : from.weight;
        continue;
      }
      this.#at++;
      const to = this.#member();
      // As in [a-\d], where the hyphen stands for itself.
      if (typeof to !== 'number') members += `${literal(from)}\\-${to.rust}`;
      else if (to < from) throw new PatternError('has a range of characters that is out of order');
      else members += `${literal(from)}-${literal(to)}`;
      weight += typeof to !== 'number' ? to.weight : to > 127 ? CLASS_WEIGHT : 0;
    }
    if (members !== '') return { rust: `[${isNegated ? '^' : ''}${members}]`, weight };
    if (isNegated) return { rust: ANY, weight };
    throw new PatternError('has "[]", which fits nothing');
  }

  #member(): number | CompiledPattern {
    if (this.#next === '\\') return this.#escape(true);
    const character = this.#next ?? '';
    this.#at++;
    return character.codePointAt(0) ?? 0;
  }

  /** A character, or a class of them. */
  #escape(isInClass: boolean): number | CompiledPattern {
    this.#at++;
    const kind = this.#next;
    if (kind === undefined) throw new PatternError('ends with "\\"');
    this.#at++;
    const known = CLASSES[kind];
    if (known !== undefined) return { rust: known, weight: 'WDSs'.includes(kind) ? CLASS_WEIGHT : 1 };
    const control = CONTROLS[kind];
    if (control !== undefined) return control;
    if (kind === 'b' && isInClass) return 8;
    if (kind === 'p' || kind === 'P') return this.#property(kind);
    if (kind === 'x') return this.#hex(/^[0-9A-Fa-f]{2}/, 2);
    if (kind === 'u') return this.#unicode();
    if (kind === 'c' && /[A-Za-z]/.test(this.#next ?? '')) {
      const letter = this.#next?.codePointAt(0) ?? 0;
      this.#at++;
      return letter % 32;
    }
    if (kind === '0' && !/\d/.test(this.#next ?? '')) return 0;
    if (/[1-9k]/.test(kind))
      throw new PatternError('has a back-reference, which cannot be evaluated in linear time');
    if (/[0-9A-Za-z]/.test(kind)) throw new PatternError(`has \\${kind}, which ECMA-262 does not know`);
    return kind.codePointAt(0) ?? 0;
  }

  #property(kind: string): CompiledPattern {
    const rest = this.#characters.slice(this.#at, this.#at + 64).join('');
    const [whole, name = ''] = /^\{([^{}]*)\}/.exec(rest) ?? [];
    const [, category, script] = PROPERTY.exec(name) ?? [];
    const property = category === undefined ? `Script=${script}` : `General_Category=${category}`;
    if (whole === undefined || !isProperty(property))
      throw new PatternError(
        `has \\${kind}${whole ?? ''}; only general categories and scripts are supported, such as \\p{L} and \\p{Script=Greek}`,
      );
    this.#at += whole.length;
    return { rust: `\\${kind}{${property}}`, weight: PROPERTY_WEIGHT };
  }

  #unicode(): number {
    const rest = this.#characters.slice(this.#at, this.#at + 16).join('');
    const [whole, digits = ''] = /^\{([0-9A-Fa-f]{1,8})\}/.exec(rest) ?? [];
    if (whole !== undefined) {
      this.#at += whole.length;
      return codePoint(Number.parseInt(digits, 16));
    }
    const first = this.#hex(/^[0-9A-Fa-f]{4}/, 4);
    const [, low] = /^\\u([Dd][C-Fc-f][0-9A-Fa-f]{2})/.exec(rest.slice(4)) ?? [];
    if (first < 0xd800 || first > 0xdbff || low === undefined) return codePoint(first);
    this.#at += 6;
    return 0x10000 + ((first - 0xd800) << 10) + (Number.parseInt(low, 16) - 0xdc00);
  }

  #hex(digits: RegExp, length: number): number {
    const text = this.#characters.slice(this.#at, this.#at + length).join('');
    if (!digits.test(text)) throw new PatternError('has an escape without its hexadecimal digits');
    this.#at += length;
    return Number.parseInt(text, 16);
  }
}

function isProperty(name: string): boolean {
  try {
    new RegExp(`\\p{${name}}`, 'u');
    return true;
  } catch {
    return false;
  }
}

function codePoint(value: number): number {
  if (value <= 0x10ffff && (value < 0xd800 || value > 0xdfff)) return value;
  throw new PatternError('has an escape that is no character of Unicode');
}

function literal(value: number): string {
  const character = String.fromCodePoint(value);
  return /[0-9A-Za-z]/.test(character) ? character : `\\x{${value.toString(16)}}`;
}
