/** YAML from strangers as data, with the places of its values for messages. Takes time and memory in proportion to the text. */
import { type Document, isScalar, LineCounter, parseDocument, visit } from 'yaml';
import { AppError, toError } from '../../errors.js';
import { isNestedDeeperThan } from './yaml-depth.js';
import { placeIn } from './yaml-place.js';

export interface YamlText {
  /** Undefined when the text says nothing. */
  readonly value: unknown;
  /** Where what a path of keys leads to stands: `, line 3, column 5`. */
  where(path: readonly string[]): string;
}

/** Far more than a person writes, far less than fills a stack or the memory. */
const MAX_DEPTH = 100;
const MAX_ALIASES = 100;

/**
 * @param name of the file, for messages
 * @throws AppError invalid_bundle with line and column
 */
export function readYaml(text: string, name: string): YamlText {
  if (isNestedDeeperThan(MAX_DEPTH, text))
    throw new AppError('invalid_bundle', `${name}: is nested too deeply`);
  const lines = new LineCounter();
  const at = (offset: number) => {
    const { line, col } = lines.linePos(offset);
    return `, line ${line}, column ${col}`;
  };
  // The library compares each key with each other one.
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    logLevel: 'error',
    uniqueKeys: false,
  });
  const error = document.errors[0];
  if (error) throw new AppError('invalid_bundle', `${name}${at(error.pos[0])}: ${error.message}`);
  const again = repeatedKey(document);
  if (again)
    throw new AppError('invalid_bundle', `${name}${at(again.offset)}: the key ${again.key} is there twice`);
  const where = (path: readonly string[]) => at(placeIn(document.contents, path));
  return { value: toData(document, name) ?? undefined, where };
}

function toData(document: Document, name: string): unknown {
  try {
    return document.toJS({ maxAliasCount: MAX_ALIASES });
  } catch (thrown) {
    // Aliases that stand for nothing, or for too much.
    throw new AppError('invalid_bundle', `${name}: ${toError(thrown).message}`, {}, { cause: thrown });
  }
}

function repeatedKey(document: Document): { key: string; offset: number } | undefined {
  let found: { key: string; offset: number } | undefined;
  visit(document, {
    Map(_, map) {
      const seen = new Set<string>();
      for (const { key } of map.items) {
        if (!isScalar(key)) continue;
        // As keys of an object, which they become.
        const text = String(key.value);
        if (seen.has(text)) {
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
