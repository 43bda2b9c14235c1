/**
 * The files that a file of Rust names: modules (`mod name;`), and what the macros `include!`, `include_str!` and
 * `include_bytes!` read, where their argument is a literal. A look at its tokens: what macros make of them is not known.
 * The command line has a copy of this file, which therefore imports nothing of ours.
 */

/** A module that is written here as a block: `mod name { ... }`. */
export interface InlineModule {
  readonly name: string;
  /** The value of its attribute `path`. */
  readonly path: string | undefined;
}

/** A file that is named. */
export type FileReference = {
  /** From 1. */
  readonly line: number;
  /** As it is written: `mod common`, `include_str!("page.html")`. */
  readonly written: string;
  /** It may be left out by `cfg`, or mean something else to a macro: then it need not be there. */
  readonly isOptional: boolean;
} & (
  | {
      readonly kind: 'module';
      readonly name: string;
      readonly path: string | undefined;
      /** The modules around it in this file, the outermost first. */
      readonly within: readonly InlineModule[];
    }
  | { readonly kind: 'rust' | 'data'; readonly path: string }
);

type TokenKind = 'word' | 'raw' | 'string' | 'mark';

interface Token {
  readonly kind: TokenKind;
  /** The content of a string, with its escapes. */
  readonly text: string;
  /** Where it begins. */
  readonly offset: number;
}

const INCLUDES: Readonly<Record<string, 'rust' | 'data'>> = {
  include: 'rust',
  include_str: 'data',
  include_bytes: 'data',
};

/** A pair of brackets that is open. */
interface Open {
  readonly module: InlineModule | undefined;
  readonly isOptional: boolean;
}

/** All files that are named, in their order. */
export function fileReferences(code: string): FileReference[] {
  const tokens = [...tokensOf(code)];
  const references: FileReference[] = [];
  const open: Open[] = [];
  /** Whether an attribute `cfg` stands before what is read now. */
  let isConditional = false;
  const around = () => open.at(-1)?.isOptional ?? false;
  const lineOf = lineCounter(code);
  for (let at = 0; at < tokens.length; at++) {
    const { kind, text, offset } = tokens[at] as Token;
    if (isText(tokens[at])) continue;
    if (text === '#' && isAttribute(tokens, at)) {
      const end = closing(tokens, isMark(tokens[at + 1], '!') ? at + 2 : at + 1);
      if (tokens.slice(at, end).some((token) => token.kind === 'word' && /^cfg(_attr)?$/.test(token.text)))
        isConditional = true;
      at = end;
    } else if (text === 'mod' && tokens[at + 1]?.kind === 'word') {
      const { path, isOptional } = attributesBefore(tokens, at);
      const name = (tokens[at + 1] as Token).text.replace(/^r#/, '');
      const module = { name, path };
      if (isMark(tokens[at + 2], '{')) {
        open.push({ module, isOptional: around() || isOptional });
        isConditional = false;
        at += 2;
      } else if (isMark(tokens[at + 2], ';')) {
        const within = open.flatMap((one) => one.module ?? []);
        references.push({
          ...{ kind: 'module', ...module, within, line: lineOf(offset), written: `mod ${name}` },
          isOptional: around() || isOptional,
        });
      }
    } else if (kind === 'word' && isMark(tokens[at + 1], '!')) {
      const included = Object.hasOwn(INCLUDES, text) ? INCLUDES[text] : undefined;
      const argument = included && literalArgument(tokens, at + 2);
      if (included && argument !== undefined)
        references.push({
          ...{ kind: included, path: argument, line: lineOf(offset) },
          written: `${text}!(${JSON.stringify(argument)})`,
          isOptional: around() || isConditional,
        });
      // `macro_rules! name { ... }` has a name before the brackets.
      const brackets = tokens[at + 2]?.kind === 'word' ? at + 3 : at + 2;
      if (isOpening(tokens[brackets])) {
        open.push({ module: undefined, isOptional: true });
        at = brackets;
      }
    } else if (isOpening(tokens[at])) {
      open.push({ module: undefined, isOptional: around() || (text === '{' && isConditional) });
      if (text === '{') isConditional = false;
    } else if (/^[)\]}]$/.test(text)) open.pop();
    else if (text === ';') isConditional = false;
  }
  return references;
}

/** `#[...]` and `#![...]`. */
function isAttribute(tokens: readonly Token[], at: number): boolean {
  return isMark(tokens[at + 1], '[') || (isMark(tokens[at + 1], '!') && isMark(tokens[at + 2], '['));
}

/** What the attributes before an item say, with its visibility between. @param at of the item */
function attributesBefore(tokens: readonly Token[], at: number) {
  let last = at - 1;
  if (isMark(tokens[last], ')')) last = opening(tokens, last) - 1;
  if (isWord(tokens[last], 'pub')) last--;
  let path: string | undefined;
  let isOptional = false;
  while (isMark(tokens[last], ']')) {
    const first = opening(tokens, last);
    if (!isMark(tokens[first - 1], '#')) break;
    const inside = tokens.slice(first + 1, last);
    if (inside.some((token) => isWord(token, 'cfg') || isWord(token, 'cfg_attr'))) isOptional = true;
    const place = inside.findIndex((token, index) => isWord(token, 'path') && isMark(inside[index + 1], '='));
    const value = place === -1 ? undefined : inside[place + 2];
    if (value && isText(value)) path = meaning(value);
    last = first - 2;
  }
  return { path, isOptional };
}

/** The argument of a macro, when it is one string. @param at of the bracket that opens */
function literalArgument(tokens: readonly Token[], at: number): string | undefined {
  if (!isOpening(tokens[at]) || !isText(tokens[at + 1])) return undefined;
  const end = isMark(tokens[at + 2], ',') ? at + 3 : at + 2;
  return end === closing(tokens, at) ? meaning(tokens[at + 1] as Token) : undefined;
}

/** The bracket that closes what one opens; the end, when there is none. */
function closing(tokens: readonly Token[], from: number): number {
  let depth = 0;
  for (let at = from; at < tokens.length; at++) {
    if (isOpening(tokens[at])) depth++;
    else if (isClosing(tokens[at]) && --depth === 0) return at;
  }
  return tokens.length;
}

function opening(tokens: readonly Token[], from: number): number {
  let depth = 0;
  for (let at = from; at >= 0; at--) {
    if (isClosing(tokens[at])) depth++;
    else if (isOpening(tokens[at]) && --depth === 0) return at;
  }
  return 0;
}

function isOpening(token: Token | undefined): boolean {
  return token?.kind === 'mark' && /^[([{]$/.test(token.text);
}

function isClosing(token: Token | undefined): boolean {
  return token?.kind === 'mark' && /^[)\]}]$/.test(token.text);
}

function isMark(token: Token | undefined, text: string): boolean {
  return token?.kind === 'mark' && token.text === text;
}

function isWord(token: Token | undefined, text: string): boolean {
  return token?.kind === 'word' && token.text === text;
}

/** Lines of growing offsets, from 1. */
function lineCounter(code: string): (offset: number) => number {
  let line = 1;
  let counted = -1;
  return (offset) => {
    for (
      let next = code.indexOf('\n', counted + 1);
      next !== -1 && next < offset;
      next = code.indexOf('\n', next + 1)
    ) {
      line++;
      counted = next;
    }
    return line;
  };
}

/** Comments and their beginnings, literals, words and marks: https://doc.rust-lang.org/reference/tokens.html */
const TOKEN = new RegExp(
  [
    String.raw`(?:\s+|//[^\n]*)+`,
    String.raw`(/\*)`,
    String.raw`[bc]?r(#*)"([\s\S]*?)(?:"\2|$)`,
    String.raw`[bc]?"((?:\\[\s\S]|[^"\\])*)(?:"|$)`,
    // A character, and the name of a lifetime.
    String.raw`b?'(?:\\[\s\S][^']*|[^\\'\ud800-\udfff]|[\ud800-\udbff][\udc00-\udfff])'`,
    String.raw`'[\w\u0080-\uffff]+`,
    String.raw`((?:r#)?[\w\u0080-\uffff]+)`,
    String.raw`([\s\S])`,
  ].join('|'),
  'y',
);

function* tokensOf(code: string): Generator<Token> {
  const token = new RegExp(TOKEN);
  for (let match = token.exec(code); match; match = token.exec(code)) {
    const [, comment, , raw, string, word, mark] = match;
    const offset = match.index;
    if (word !== undefined) yield { kind: 'word', text: word, offset };
    else if (mark !== undefined) yield { kind: 'mark', text: mark, offset };
    else if (string !== undefined) yield { kind: 'string', text: string, offset };
    else if (raw !== undefined) yield { kind: 'raw', text: raw, offset };
    else if (comment !== undefined) token.lastIndex = endOfComment(code, token.lastIndex);
  }
}

function isText(token: Token | undefined): boolean {
  return token?.kind === 'string' || token?.kind === 'raw';
}

/** The text that a literal means. */
function meaning({ kind, text }: Token): string {
  return kind === 'string' ? unescaped(text) : text;
}

/** Comments of Rust can be nested. */
function endOfComment(code: string, from: number): number {
  const mark = /\/\*|\*\//g;
  mark.lastIndex = from;
  let depth = 1;
  for (let match = mark.exec(code); match; match = mark.exec(code)) {
    depth += match[0] === '/*' ? 1 : -1;
    if (depth === 0) return mark.lastIndex;
  }
  return code.length;
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', '0': '\0' };

/** The text that a string means: https://doc.rust-lang.org/reference/tokens.html#string-literals */
function unescaped(text: string): string {
  return text.replace(
    /\\(?:u\{([0-9a-fA-F_]+)\}|x([0-9a-fA-F]{2})|\n\s*|([\s\S]))/g,
    (_, unicode: string | undefined, byte: string | undefined, other: string | undefined) => {
      const code = unicode?.replaceAll('_', '') ?? byte;
      if (code !== undefined) return String.fromCodePoint(Math.min(Number.parseInt(code, 16), 0x10ffff));
      return other === undefined ? '' : (ESCAPES[other] ?? other);
    },
  );
}
