/**
 * Patterns of ECMA-262 as the front evaluates them: in the syntax of a library that takes linear time for any text.
 * What such a library cannot do (look-around, back-references) is refused.
 */
import { type AST, RegExpParser, RegExpSyntaxError } from '@eslint-community/regexpp';

/** A pattern for the front. */
export interface CompiledPattern {
  /** The pattern in the syntax of the crate `regex`. */
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
const ANY_BUT_LINE_ENDS = '[^\\n\\r\\x{2028}\\x{2029}]';
const ANY = '[\\x{0}-\\x{10ffff}]';
/** Weight of a class with characters beyond ASCII, which are several bytes. */
const CLASS_WEIGHT = 8;
const PROPERTY_WEIGHT = 100;
/** General categories and scripts, as patterns name them: what the front knows. */
const PROPERTIES: Readonly<Record<string, string>> = {
  ...{ General_Category: 'General_Category', gc: 'General_Category', Script: 'Script', sc: 'Script' },
};

/** A parser for ECMAScript 2024, which does not have modifiers in groups yet, as in `(?i:a)`. */
const parser = new RegExpParser({ ecmaVersion: 2024 });

/** @throws PatternError */
export function compilePattern(source: string): CompiledPattern {
  if (source.length > MAX_LENGTH) throw new PatternError(`is longer than ${MAX_LENGTH} characters`);
  const compiled = compileAlternatives(parse(source).alternatives);
  if (compiled.weight > MAX_WEIGHT)
    throw new PatternError('is too large once its repetitions are written out');
  return compiled;
}

function parse(source: string): AST.Pattern {
  const strict = strictly(source);
  try {
    return parser.parsePattern(strict, 0, strict.length, { unicode: true });
  } catch (thrown) {
    if (!(thrown instanceof RegExpSyntaxError)) throw thrown;
    const reason = thrown.message.slice(thrown.message.lastIndexOf('/u: ') + '/u: '.length);
    if (reason !== 'Invalid property name') throw new PatternError(`is not one of ECMA-262: ${reason}`);
    const [property = '\\p'] =
      /^\\[pP]\{[^{}]*\}/.exec(strict.slice(strict.lastIndexOf('\\', thrown.index))) ?? [];
    throw unknownProperty(property);
  }
}

function unknownProperty(property: string): PatternError {
  return new PatternError(
    `has ${property}; only general categories and scripts are supported, such as \\p{L} and \\p{Script=Greek}`,
  );
}

/** Parts of a pattern that are more than each of their characters, and characters that begin or end something. */
const PARTS =
  /\\[pP]\{[^{}]*\}-?|\\u\{[0-9A-Fa-f]+\}|\\[dDsSwW]-?|\\[\s\S]|\{\d+(?:,\d*)?\}|\(\?<(?![=!])[^>]*>|[()[\]{}-]/gu;

/**
 * The same pattern as it is written with the flag `u`, without names of groups. That flag has properties, and
 * characters beyond U+FFFF, but refuses needless escapes (`\-`), brackets that stand for themselves, and hyphens
 * beside classes (`[a-\d]`).
 */
function strictly(source: string): string {
  let isInClass = false;
  let depth = 1;
  return source.replace(PARTS, (part, at: number) => {
    const next = source.slice(at + part.length);
    if (/^\\[^0-9A-Za-z]/.test(part)) return escaped(part.slice(1));
    if (part.startsWith('\\')) {
      const isHyphen = isInClass && part.endsWith('-') && !next.startsWith(']');
      return isHyphen ? `${part.slice(0, -1)}\\-` : part;
    }
    if (isInClass) {
      if (part === ']') isInClass = false;
      return part === '-' && /^\\[dDsSwWpP]/.test(next) ? '\\-' : part;
    }
    if (part === '[') isInClass = true;
    if (part === ')') depth--;
    if (part.startsWith('(')) {
      depth++;
      if (depth > MAX_DEPTH) throw new PatternError(`has groups more than ${MAX_DEPTH} levels deep`);
      return '(';
    }
    return ['{', '}', ']'].includes(part) ? `\\${part}` : part;
  });
}

function escaped(character: string): string {
  return `\\u{${character.codePointAt(0)?.toString(16)}}`;
}

function compileAlternatives(alternatives: readonly AST.Alternative[]): CompiledPattern {
  const all = alternatives.map(({ elements }) => elements.map(compileElement));
  return {
    rust: all.map((elements) => elements.map(({ rust }) => rust).join('')).join('|'),
    weight: all.flat().reduce((sum, { weight }) => sum + weight, 0),
  };
}

function compileElement(element: AST.Element): CompiledPattern {
  switch (element.type) {
    case 'Character':
      return { rust: literal(element.value), weight: 1 };
    case 'CharacterSet':
      return compileSet(element);
    case 'CharacterClass':
      return compileClass(element);
    case 'Group':
    case 'CapturingGroup': {
      const { rust, weight } = compileAlternatives(element.alternatives);
      return { rust: `(?:${rust})`, weight: weight + 1 };
    }
    case 'Quantifier':
      return compileQuantifier(element);
    case 'Assertion':
      return compileAssertion(element);
    case 'Backreference':
      throw new PatternError('has a back-reference, which cannot be evaluated in linear time');
    case 'ExpressionCharacterClass':
      throw new PatternError('has a class of the flag v, which is not supported');
  }
}

function compileAssertion(assertion: AST.Assertion): CompiledPattern {
  if (assertion.kind === 'start') return { rust: '^', weight: 1 };
  if (assertion.kind === 'end') return { rust: '$', weight: 1 };
  if (assertion.kind !== 'word')
    throw new PatternError('has look-around, which cannot be evaluated in linear time');
  if (assertion.negate) throw new PatternError('has \\B, which is not supported');
  return { rust: '(?-u:\\b)', weight: 1 };
}

function compileQuantifier({ element, min, max, raw }: AST.Quantifier): CompiledPattern {
  const sign = raw.slice(element.raw.length);
  const most = max === Number.POSITIVE_INFINITY ? min + 1 : max;
  if (most > MAX_REPEAT) throw new PatternError(`repeats more than ${MAX_REPEAT} times: ${sign}`);
  const { rust, weight } = compileElement(element);
  // A group, or the library would take it for a repetition of another kind.
  return { rust: `(?:${rust})${sign}`, weight: (weight + 1) * Math.max(1, most) };
}

function compileSet(set: AST.CharacterSet): CompiledPattern {
  const sign = 'negate' in set && set.negate ? '^' : '';
  switch (set.kind) {
    case 'any':
      return { rust: ANY_BUT_LINE_ENDS, weight: CLASS_WEIGHT };
    case 'digit':
      return { rust: `[${sign}${DIGITS}]`, weight: sign === '' ? 1 : CLASS_WEIGHT };
    case 'word':
      return { rust: `[${sign}${WORD}]`, weight: sign === '' ? 1 : CLASS_WEIGHT };
    case 'space':
      return { rust: `[${sign}${SPACE}]`, weight: CLASS_WEIGHT };
    case 'property': {
      const name = PROPERTIES[set.key];
      // The front does not know those with small letters, such as `digit`.
      if (name === undefined || !/^[A-Z]/.test(set.value ?? '')) throw unknownProperty(set.raw);
      return { rust: `\\${set.negate ? 'P' : 'p'}{${name}=${set.value}}`, weight: PROPERTY_WEIGHT };
    }
  }
}

function compileClass({ negate, elements }: AST.CharacterClass): CompiledPattern {
  const members = elements.map(compileMember);
  const weight = members.reduce((sum, member) => sum + member.weight, negate ? CLASS_WEIGHT : 1);
  if (members.length > 0)
    return { rust: `[${negate ? '^' : ''}${members.map(({ rust }) => rust).join('')}]`, weight };
  if (negate) return { rust: ANY, weight };
  throw new PatternError('has "[]", which fits nothing');
}

function compileMember(member: AST.CharacterClassElement): CompiledPattern {
  switch (member.type) {
    case 'Character':
      return { rust: literal(member.value), weight: Number(member.value > 127) };
    case 'CharacterClassRange': {
      const { min, max } = member;
      return {
        rust: `${literal(min.value)}-${literal(max.value)}`,
        weight: max.value > 127 ? CLASS_WEIGHT : 0,
      };
    }
    case 'CharacterSet':
      return compileSet(member);
    default:
      throw new PatternError('has a class of the flag v, which is not supported');
  }
}

function literal(value: number): string {
  if (value >= 0xd800 && value <= 0xdfff)
    throw new PatternError('has an escape that is no character of Unicode');
  const character = String.fromCodePoint(value);
  return /[0-9A-Za-z]/.test(character) ? character : `\\x{${value.toString(16)}}`;
}
