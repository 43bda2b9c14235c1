/** Parses untrusted YAML 1.2 in time linear to its length. */
import {
  type Document,
  isMap,
  isNode,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  Parser,
  parseDocument,
  visit,
} from 'yaml';
import { toError } from '../errors.js';

export interface YamlLimits {
  /** Depth of nested maps and lists. */
  readonly depth: number;
  /** Aliases that are expanded, including those within expanded aliases: the bound of "alias bombs". */
  readonly aliases: number;
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

/** @throws YamlError */
export function parseYaml(text: string, limits: YamlLimits): ParsedYaml {
  if (isDeeperThan(limits.depth, text)) {
    throw new YamlError(`is nested more than ${limits.depth} levels deep`);
  }
  const lines = new LineCounter();
  const locationAt = (offset: number) => {
    const { line, col } = lines.linePos(offset);
    return `line ${line}, column ${col}`;
  };
  const document = parseDocument(text, {
    // `<<: *base` is YAML 1.1, but common.
    merge: true,
    lineCounter: lines,
    prettyErrors: false,
    logLevel: 'error',
    // The check of the library takes quadratic time; `duplicateKey` replaces it.
    uniqueKeys: false,
  });
  const [error] = document.errors;
  if (error) {
    throw new YamlError(`is not YAML: ${error.message}`, locationAt(error.pos[0]), { cause: error });
  }
  const duplicate = duplicateKey(document);
  if (duplicate) {
    throw new YamlError(`has the key "${duplicate.key}" twice in one map`, locationAt(duplicate.offset));
  }
  return {
    value: toData(document, limits.aliases) ?? undefined,
    locationOf: (path) => locationAt(offsetOf(document.contents, path)),
  };
}

/**
 * Measures the depth without recursion. Called before the text is composed, because the composer of the library
 * recurses, and V8 aborts the process on a stack overflow while it compiles a regular expression.
 */
function isDeeperThan(levels: number, text: string): boolean {
  const parser = new Parser();
  for (const lexeme of new Lexer().lex(text)) {
    // The parser only advances when its tokens are consumed.
    for (const _ of parser.next(lexeme));
    if (parser.stack.length > levels) return true;
  }
  return false;
}

function toData(document: Document, aliases: number): unknown {
  try {
    return document.toJS({ maxAliasCount: aliases });
  } catch (thrown) {
    const cause = toError(thrown);
    const message = /alias count/i.test(cause.message)
      ? `expands more than ${aliases} aliases (*name)`
      : `is not YAML: ${cause.message}`;
    throw new YamlError(message, undefined, { cause });
  }
}

function duplicateKey(document: Document): { key: string; offset: number } | undefined {
  let found: { key: string; offset: number } | undefined;
  visit(document, {
    Map(_, { items }) {
      const seen = new Set<string>();
      for (const { key } of items) {
        if (!isScalar(key)) continue;
        // Keys become strings in the resulting object.
        const text = String(key.value);
        // A map may have several merge keys.
        if (seen.has(text) && text !== '<<') {
          found = { key: text, offset: key.range?.[0] ?? 0 };
          return visit.BREAK;
        }
        seen.add(text);
      }
      return undefined;
    },
  });
  return found;
}

/** Offset of the value at a path of keys; of the last key that exists when the path is incomplete. */
function offsetOf(contents: unknown, path: readonly string[]): number {
  let offset = startOf(contents) ?? 0;
  let node = contents;
  for (const key of path) {
    let found: unknown;
    if (isMap(node)) {
      const pair = node.items.find((item) => isScalar(item.key) && String(item.key.value) === key);
      offset = startOf(pair?.key) ?? offset;
      found = pair?.value;
    } else if (isSeq(node)) {
      found = node.items[Number(key)];
      offset = startOf(found) ?? offset;
    }
    if (found === undefined) break;
    node = found;
  }
  return offset;
}

function startOf(node: unknown): number | undefined {
  return isNode(node) ? node.range?.[0] : undefined;
}
