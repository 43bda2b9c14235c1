/**
 * The files that a file of Rust names: modules (`mod name;`), and what the macros `include!`, `include_str!` and
 * `include_bytes!` read, where their argument is a literal. A look at its tokens: what macros make of them is not
 * known. The command line has a copy of this file, which therefore imports nothing of ours.
 */

/** A module that is written here as a block: `mod name { ... }`. */
export interface InlineModule {
  readonly name: string;
  /** The value of its attribute `path`. */
  readonly path: string | undefined;
  /** The one that it is written in; undefined: the file. */
  readonly around: InlineModule | undefined;
  /** How many it is written in. */
  readonly depth: number;
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
      /** The value of its attribute `path`; undefined: it is at its usual place. */
      readonly path: string | undefined;
      /** The module that it is written in; undefined: the file. References of one module share it. */
      readonly around: InlineModule | undefined;
    }
  | { readonly kind: 'rust' | 'data'; readonly path: string }
);

/** What a file of Rust says of others. */
export interface RustFile {
  /** All files that it names, in their order. */
  readonly references: readonly FileReference[];
  /** The value of the attribute `#![path]` of the file itself. */
  readonly path: string | undefined;
}

type TokenKind = 'word' | 'raw' | 'string' | 'mark';

interface Token {
  readonly kind: TokenKind;
  /** The content of a string, with its escapes. */
  readonly text: string;
  /** From 1. */
  readonly line: number;
}

const INCLUDES: Readonly<Record<string, 'rust' | 'data'>> = {
  include: 'rust',
  include_str: 'data',
  include_bytes: 'data',
};

/** A pair of brackets that is open, or the file. */
interface Open {
  readonly isModule: boolean;
  /** What is named in it need not be there. */
  isOptional: boolean;
}

/** What code says of other files. */
export function fileReferences(code: string): RustFile {
  const tokens = [...tokensOf(code)];
  const partners = partnersOf(tokens);
  const references: FileReference[] = [];
  const open: Open[] = [{ isModule: true, isOptional: false }];
  /** The modules that are open, the outermost first, without the file. */
  const modules: (InlineModule & { path: string | undefined })[] = [];
  let filePath: string | undefined;
  /** Whether an attribute `cfg` stands before what is read now. */
  let isConditional = false;
  const around = () => open.at(-1) as Open;
  for (let at = 0; at < tokens.length; at++) {
    const { kind, text, line } = tokens[at] as Token;
    if (isText(tokens[at])) continue;
    if (text === '#' && isAttribute(tokens, at)) {
      const isInner = isMark(tokens[at + 1], '!');
      const bracket = isInner ? at + 2 : at + 1;
      const hasCfg = /^cfg(_attr)?$/.test(tokens[bracket + 1]?.text ?? '');
      if (!isInner) isConditional ||= hasCfg;
      // An inner one holds for what it stands in. Of several paths, the first counts.
      else if (hasCfg) around().isOptional = true;
      else if (around().isModule) {
        const path = pathIn(tokens, bracket + 1);
        const innermost = modules.at(-1);
        if (innermost) innermost.path ??= path;
        else filePath ??= path;
      }
      open.push({ isModule: false, isOptional: around().isOptional || hasCfg });
      at = bracket;
    } else if (text === 'mod' && tokens[at + 1]?.kind === 'word') {
      const { path, conditionalPaths, isOptional } = attributesBefore(tokens, partners, at);
      const name = (tokens[at + 1] as Token).text.replace(/^r#/, '').normalize('NFC');
      if (isMark(tokens[at + 2], '{')) {
        open.push({ isModule: true, isOptional: around().isOptional || isOptional });
        modules.push({ name, path, around: modules.at(-1), depth: modules.length });
        isConditional = false;
        at += 2;
      } else if (isMark(tokens[at + 2], ';')) {
        const module = {
          kind: 'module',
          name,
          around: modules.at(-1),
          line,
          written: `mod ${name}`,
        } as const;
        for (const other of conditionalPaths) references.push({ ...module, path: other, isOptional: true });
        references.push({ ...module, path, isOptional: around().isOptional || isOptional });
      }
    } else if (kind === 'word' && isMark(tokens[at + 1], '!')) {
      const included = Object.hasOwn(INCLUDES, text) ? INCLUDES[text] : undefined;
      const argument = included && literalArgument(tokens, partners, at + 2);
      if (included && argument !== undefined)
        references.push({
          ...{ kind: included, path: argument, line },
          written: `${text}!(${JSON.stringify(argument)})`,
          isOptional: around().isOptional || isConditional,
        });
      // `macro_rules! name { ... }` has a name before the brackets.
      const brackets = tokens[at + 2]?.kind === 'word' ? at + 3 : at + 2;
      if (isOpening(tokens[brackets])) {
        open.push({ isModule: false, isOptional: true });
        at = brackets;
      }
    } else if (isOpening(tokens[at])) {
      open.push({ isModule: false, isOptional: around().isOptional || (text === '{' && isConditional) });
      if (text === '{') isConditional = false;
    } else if (isClosing(tokens[at])) {
      if (open.length > 1 && open.pop()?.isModule) modules.pop();
    } else if (text === ';') isConditional = false;
  }
  return { references, path: filePath };
}

/** `#[...]` and `#![...]`. */
function isAttribute(tokens: readonly Token[], at: number): boolean {
  return isMark(tokens[at + 1], '[') || (isMark(tokens[at + 1], '!') && isMark(tokens[at + 2], '['));
}

/** The value of an attribute `path`. @param at of its name */
function pathIn(tokens: readonly Token[], at: number): string | undefined {
  const value = tokens[at + 2];
  const isPath = isWord(tokens[at], 'path') && isMark(tokens[at + 1], '=');
  return isPath && value && isText(value) ? meaning(value) : undefined;
}

/** What the attributes before an item say, with its visibility between. @param at of the item */
function attributesBefore(tokens: readonly Token[], partners: Int32Array, at: number) {
  let last = at - 1;
  if (isMark(tokens[last], ')')) last = (partners[last] ?? 0) - 1;
  if (isWord(tokens[last], 'pub')) last--;
  let path: string | undefined;
  const conditionalPaths: string[] = [];
  let isOptional = false;
  while (isMark(tokens[last], ']')) {
    const first = partners[last] ?? NONE;
    if (first === NONE || !isMark(tokens[first - 1], '#')) break;
    const inside = tokens.slice(first + 1, last);
    const isConditional = isWord(inside[0], 'cfg_attr');
    if (isConditional || isWord(inside[0], 'cfg')) isOptional = true;
    const value = inside.map((_, index) => pathIn(inside, index)).find((path) => path !== undefined);
    if (value !== undefined) {
      if (isConditional) conditionalPaths.push(value);
      // Of several, the first counts.
      else path = value;
    }
    last = first - 2;
  }
  return { path, conditionalPaths, isOptional };
}

/** The argument of a macro, when it is one string. @param at of the bracket that opens */
function literalArgument(tokens: readonly Token[], partners: Int32Array, at: number): string | undefined {
  if (!isOpening(tokens[at]) || !isText(tokens[at + 1])) return undefined;
  const end = isMark(tokens[at + 2], ',') ? at + 3 : at + 2;
  return end === partners[at] ? meaning(tokens[at + 1] as Token) : undefined;
}

const NONE = -1;

/** Of each bracket the place of the one that closes or opens it. */
function partnersOf(tokens: readonly Token[]): Int32Array {
  const partners = new Int32Array(tokens.length).fill(NONE);
  const opened: number[] = [];
  for (const [at, token] of tokens.entries()) {
    if (isOpening(token)) opened.push(at);
    const opening = isClosing(token) ? opened.pop() : undefined;
    if (opening === undefined) continue;
    partners[opening] = at;
    partners[at] = opening;
  }
  return partners;
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
  let line = 1;
  for (let match = token.exec(code); match; match = token.exec(code)) {
    const [, comment, , raw, string, word, mark] = match;
    if (word !== undefined) yield { kind: 'word', text: word, line };
    else if (mark !== undefined) yield { kind: 'mark', text: mark, line };
    else {
      if (string !== undefined) yield { kind: 'string', text: string, line };
      else if (raw !== undefined) yield { kind: 'raw', text: raw, line };
      else if (comment !== undefined) token.lastIndex = endOfComment(code, token.lastIndex);
      for (let at = match.index; at < token.lastIndex; at++) if (code.charCodeAt(at) === 10) line++;
    }
  }
}

function isText(token: Token | undefined): boolean {
  return token?.kind === 'string' || token?.kind === 'raw';
}

/** The text that a literal means. */
function meaning({ kind, text }: Token): string {
  return kind === 'string' ? unescaped(text) : text;
}

/** Where a comment ends that `/*` began. They can be nested. */
export function endOfComment(code: string, from: number): number {
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
