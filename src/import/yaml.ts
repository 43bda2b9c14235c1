/** Parses untrusted YAML 1.2 in time linear to its length. */
import {
  Composer,
  type CST,
  type Document,
  isMap,
  isNode,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  Parser,
  visit,
} from 'yaml';
import { toError } from '../errors.js';

export interface YamlLimits {
  /** Depth of nested maps and lists. */
  readonly depth: number;
  /** Aliases that are expanded, including those within expanded aliases: the bound of "alias bombs". */
  readonly aliases: number;
}

/** A key that stands in one map again. */
export interface RepeatedKey {
  readonly key: string;
  /** `line 3, column 5`, of the later one. */
  readonly location: string;
}

export interface ParsedYaml {
  /** Undefined for a text without content. */
  readonly value: unknown;
  /** The location of the value at this path of keys: `line 3, column 5`. */
  locationOf(path: readonly string[]): string;
}

/** Why a text cannot be parsed. */
export class YamlError extends Error {
  override readonly name = 'YamlError';

  constructor(
    /** A predicate: the caller puts "The document" or the name of a file before it. */
    message: string,
    /** `line 3, column 5`; undefined when there is no single location. */
    readonly location?: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/**
 * Parses a text. Where a key stands in one map again, the last one counts.
 * @param repeated gets such keys; without it, one is an error
 * @throws YamlError
 */
export function parseYaml(text: string, limits: YamlLimits, repeated?: RepeatedKey[]): ParsedYaml {
  const lines = new LineCounter();
  const locationAt = (offset: number) => {
    const { line, col } = lines.linePos(offset);
    return `line ${line}, column ${col}`;
  };
  const tokens = tokensOf(text, limits.depth, lines);
  const composer = new Composer({
    // `<<: *base` is YAML 1.1, but common.
    merge: true,
    prettyErrors: false,
    logLevel: 'error',
    // The check of the library takes quadratic time; `repeatedKeys` replaces it.
    uniqueKeys: false,
  });
  // A text without content is a document too.
  const [document, another] = composer.compose(tokens, true, text.length);
  if (!document) return { value: undefined, locationOf: () => locationAt(0) };
  if (another) throw new YamlError('has multiple documents', locationAt(another.range[0]));
  const [error] = document.errors;
  if (error) {
    throw new YamlError(`is not YAML: ${error.message}`, locationAt(error.pos[0]), { cause: error });
  }
  for (const { key, offset } of repeatedKeys(document)) {
    if (!repeated) throw new YamlError(`has the key "${key}" twice in one map`, locationAt(offset));
    repeated.push({ key, location: locationAt(offset) });
  }
  return {
    value: toData(document, limits.aliases, locationAt) ?? undefined,
    locationOf: (path) => locationAt(offsetOf(document.contents, path)),
  };
}

/**
 * The concrete syntax, parsed without recursion up to a limit of its depth. It is composed only after that, because the
 * composer of the library recurses, and V8 aborts the process on a stack overflow while it compiles a regular
 * expression.
 */
function tokensOf(text: string, levels: number, lines: LineCounter): readonly CST.Token[] {
  lines.addNewLine(0);
  const parser = new Parser(lines.addNewLine);
  const tokens: CST.Token[] = [];
  for (const lexeme of new Lexer().lex(text)) {
    for (const token of parser.next(lexeme)) tokens.push(token);
    if (parser.stack.length > levels) throw new YamlError(`is nested more than ${levels} levels deep`);
  }
  tokens.push(...parser.end());
  return tokens;
}

function toData(document: Document, aliases: number, locationAt: (offset: number) => string): unknown {
  try {
    return document.toJS({ maxAliasCount: aliases });
  } catch (thrown) {
    const cause = toError(thrown);
    if (/alias count/i.test(cause.message)) {
      throw new YamlError(`expands more than ${aliases} aliases (*name)`, undefined, { cause });
    }
    const [, unknown] = /^Unresolved alias .*: (.*)$/.exec(cause.message) ?? [];
    const offset = unknown === undefined ? undefined : firstAlias(document, unknown);
    const location = offset === undefined ? undefined : locationAt(offset);
    throw new YamlError(`is not YAML: ${cause.message}`, location, { cause });
  }
}

/** Offset of the first alias with this name: if any has no anchor before it, the first one has none. */
function firstAlias(document: Document, name: string): number | undefined {
  let offset: number | undefined;
  visit(document, {
    Alias: (_key, alias) => {
      if (alias.source !== name) return undefined;
      offset = startOf(alias);
      return visit.BREAK;
    },
  });
  return offset;
}

/** Keys that stand in a map again, in the order of the text. */
function repeatedKeys(document: Document): { key: string; offset: number }[] {
  const repeated: { key: string; offset: number }[] = [];
  const pending: unknown[] = [document.contents];
  while (pending.length > 0) {
    const node = pending.pop();
    if (isSeq(node)) for (const item of node.items) pending.push(item);
    if (!isMap(node)) continue;
    const seen = new Set<string>();
    for (const { key, value } of node.items) {
      pending.push(value);
      if (!isScalar(key)) continue;
      // Keys become strings in the resulting object.
      const text = String(key.value);
      // A map may have several merge keys.
      if (seen.has(text) && text !== '<<') repeated.push({ key: text, offset: key.range?.[0] ?? 0 });
      seen.add(text);
    }
  }
  return repeated.sort((left, right) => left.offset - right.offset);
}

/** Offset of the value at a path of keys; of the last key that exists when the path is incomplete. */
function offsetOf(contents: unknown, path: readonly string[]): number {
  let offset = startOf(contents) ?? 0;
  let node = contents;
  for (const key of path) {
    let child: unknown;
    if (isMap(node)) {
      const pair = node.items.find((item) => isScalar(item.key) && String(item.key.value) === key);
      offset = startOf(pair?.key) ?? offset;
      child = pair?.value;
    } else if (isSeq(node)) {
      child = node.items[Number(key)];
      offset = startOf(child) ?? offset;
    }
    if (child === undefined) break;
    node = child;
  }
  return offset;
}

function startOf(node: unknown): number | undefined {
  return isNode(node) ? node.range?.[0] : undefined;
}
