/** YAML 1.2 from strangers as data, with the places of its values for messages. Takes time in proportion to the text. */
import { type Document, isScalar, LineCounter, parseDocument, visit } from 'yaml';
import { toError } from '../../errors.js';
import { isNestedDeeperThan } from './nesting.js';
import { placeIn } from './place.js';

export interface YamlLimits {
  /** Levels of maps and lists. */
  readonly depth: number;
  /** How often aliases may repeat what they stand for, aliases within it multiplied: the bound of "alias bombs". */
  readonly aliases: number;
}

export interface YamlText {
  /** Undefined when the text says nothing. */
  readonly value: unknown;
  /** Where what a path of keys leads to stands: `line 3, column 5`. */
  where(path: readonly string[]): string;
}

/** Why a text cannot be read. */
export class YamlProblem extends Error {
  override readonly name = 'YamlProblem';

  constructor(
    /** In words that follow "The document" or the name of a file. */
    message: string,
    /** `line 3, column 5`; undefined when it is not one place. */
    readonly place?: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** @throws YamlProblem */
export function readYaml(text: string, limits: YamlLimits): YamlText {
  if (isNestedDeeperThan(limits.depth, text)) {
    throw new YamlProblem(`is nested more than ${limits.depth} levels deep`);
  }
  const lines = new LineCounter();
  const at = (offset: number) => {
    const { line, col } = lines.linePos(offset);
    return `line ${line}, column ${col}`;
  };
  const document = parseDocument(text, {
    // `<<: *base`, which YAML 1.1 had, is what many documents are written with.
    merge: true,
    lineCounter: lines,
    prettyErrors: false,
    logLevel: 'error',
    // The library compares each key with each other one.
    uniqueKeys: false,
  });
  const [error] = document.errors;
  if (error) throw new YamlProblem(`is not YAML: ${error.message}`, at(error.pos[0]), { cause: error });
  const again = repeatedKey(document);
  if (again) throw new YamlProblem(`has the key "${again.key}" twice in one map`, at(again.offset));
  return {
    value: toData(document, limits.aliases) ?? undefined,
    where: (path) => at(placeIn(document.contents, path)),
  };
}

function toData(document: Document, aliases: number): unknown {
  try {
    return document.toJS({ maxAliasCount: aliases });
  } catch (thrown) {
    const cause = toError(thrown);
    const message = /alias count/i.test(cause.message)
      ? `repeats too much by aliases (*name): at most ${aliases} times may they stand for something`
      : `is not YAML: ${cause.message}`;
    throw new YamlProblem(message, undefined, { cause });
  }
}

function repeatedKey(document: Document): { key: string; offset: number } | undefined {
  let found: { key: string; offset: number } | undefined;
  visit(document, {
    Map(_, { items }) {
      const seen = new Set<string>();
      for (const { key } of items) {
        if (!isScalar(key)) continue;
        // As keys of an object, which they become.
        const text = String(key.value);
        // Merge keys may come several times.
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
