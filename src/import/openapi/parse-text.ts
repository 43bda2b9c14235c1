/** Parses the text of a document: JSON or YAML. */
import { AppError } from '../../errors.js';
import { parseYaml, type RepeatedKey, YamlError } from '../yaml.js';
import { shortened } from './json.js';
import { repeatedKeys } from './repeated-keys.js';
import { MAX_DEPTH } from './scan.js';

const LIMITS = { depth: MAX_DEPTH, aliases: 10_000 };

export interface ParsedText {
  readonly value: unknown;
  /** The text, when it is JSON. */
  readonly json?: string;
  /** Keys that stand again in one object, of which the value has the last one. */
  readonly repeatedKeys: readonly RepeatedKey[];
}

/** @throws AppError invalid_spec with line and column */
export function parseText(text: string): ParsedText {
  const content = text.replace(/^\ufeff/, '');
  if (content.trim() === '') throw textError('is empty; send an OpenAPI document, YAML or JSON');
  if (/^\s*<[!?a-z]/i.test(content))
    throw textError('is HTML or XML, neither JSON nor YAML: was a page downloaded in its place?');
  if (/^\s*\{/.test(content)) {
    try {
      const value: unknown = JSON.parse(content);
      return { value, json: content, repeatedKeys: repeatedKeys(content, value) };
    } catch {
      // It may be YAML in flow style; otherwise the error of the YAML parser has line and column.
    }
  }
  try {
    const repeated: RepeatedKey[] = [];
    return { value: parseYaml(content, LIMITS, repeated).value, repeatedKeys: repeated };
  } catch (thrown) {
    if (!(thrown instanceof YamlError)) throw thrown;
    const { message, location } = thrown;
    const problem = shortened(message.replace('is not YAML', 'is neither JSON nor YAML'));
    throw textError(location ? `${problem} (${location})` : problem, { cause: thrown });
  }
}

/** The warning about a key that stands in an object again. */
export function repeatedKeyText({ key, location }: RepeatedKey): string {
  return `${location}: the key "${shortened(key)}" stands there again in the same object; only this last one is read`;
}

function textError(message: string, options?: ErrorOptions): AppError {
  return new AppError('invalid_spec', `The document ${message}`, {}, options);
}
