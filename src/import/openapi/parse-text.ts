/** The text of a document as data: JSON or YAML 1.2 (with merge keys, which many documents use). */
import { type Document, isScalar, LineCounter, parseDocument, visit } from 'yaml';
import { AppError, toError } from '../../errors.js';
import { shortened } from './json.js';

/** How often aliases may repeat what they stand for, aliases within it multiplied: the bound of "alias bombs". */
const MAX_ALIASES = 10_000;

/**
 * Reads YAML or JSON.
 * @throws AppError invalid_spec with line and column
 */
export function parseText(text: string): unknown {
  const content = text.replace(/^\ufeff/, '');
  if (content.trim() === '') throw textError('is empty; send an OpenAPI document, YAML or JSON');
  if (/^\s*\{/.test(content)) {
    try {
      return JSON.parse(content);
    } catch {
      // YAML may begin with a brace too; if it is neither, YAML's message has line and column.
    }
  }
  return parseYaml(content);
}

function parseYaml(content: string): unknown {
  const lineCounter = new LineCounter();
  let document: Document;
  try {
    // The library would compare each key with all others, which takes minutes for a large map.
    document = parseDocument(content, { merge: true, uniqueKeys: false, lineCounter });
    requireUniqueKeys(document, lineCounter);
  } catch (thrown) {
    throw notYaml(thrown);
  }
  const [error] = document.errors;
  if (error && /call stack/i.test(error.message)) throw tooDeep(error);
  if (error) throw textError(`is neither JSON nor YAML: ${firstLine(error.message)}`, { cause: error });
  try {
    return document.toJS({ maxAliasCount: MAX_ALIASES });
  } catch (thrown) {
    throw notYaml(thrown);
  }
}

function requireUniqueKeys(document: Document, lines: LineCounter): void {
  visit(document, {
    Map(_key, { items }) {
      const seen = new Set<string>();
      for (const { key } of items) {
        if (!isScalar(key)) continue;
        const name = String(key.value);
        // Merge keys may come several times.
        if (seen.has(name) && name !== '<<') {
          const { line, col } = lines.linePos(key.range?.[0] ?? 0);
          throw textError(
            `has the key "${shortened(name)}" twice in one map, again at line ${line}, column ${col}`,
          );
        }
        seen.add(name);
      }
    },
  });
}

function notYaml(thrown: unknown): AppError {
  if (thrown instanceof AppError) return thrown;
  const error = toError(thrown);
  if (error instanceof RangeError) return tooDeep(error);
  if (/alias count/i.test(error.message)) {
    return textError(
      `repeats too much by aliases (*name): at most ${MAX_ALIASES} times may they stand for something`,
      { cause: error },
    );
  }
  return textError(`cannot be read as YAML: ${firstLine(error.message)}`, { cause: error });
}

function tooDeep(cause: Error): AppError {
  return textError('is nested too deeply', { cause });
}

/** The library goes on with an extract of the text. */
function firstLine(message: string): string {
  return shortened((message.split('\n')[0] ?? '').replace(/:$/, ''));
}

function textError(message: string, options?: ErrorOptions): AppError {
  return new AppError('invalid_spec', `The document ${message}`, {}, options);
}
