/** Parses the text of a document: JSON or YAML. */
import { AppError } from '../../errors.js';
import { parseYaml, YamlError } from '../yaml.js';
import { shortened } from './json.js';
import { MAX_DEPTH } from './scan.js';

const LIMITS = { depth: MAX_DEPTH, aliases: 10_000 };

export interface ParsedText {
  readonly value: unknown;
  /** The text, when it is JSON. */
  readonly json?: string;
}

/** @throws AppError invalid_spec with line and column */
export function parseText(text: string): ParsedText {
  const content = text.replace(/^\ufeff/, '');
  if (content.trim() === '') throw textError('is empty; send an OpenAPI document, YAML or JSON');
  if (/^\s*\{/.test(content)) {
    try {
      return { value: JSON.parse(content), json: content };
    } catch {
      // It may be YAML in flow style; otherwise the error of the YAML parser has line and column.
    }
  }
  try {
    return { value: parseYaml(content, LIMITS).value };
  } catch (thrown) {
    if (!(thrown instanceof YamlError)) throw thrown;
    const { message, location } = thrown;
    const problem = shortened(message.replace('is not YAML', 'is neither JSON nor YAML'));
    throw textError(location ? `${problem} (${location})` : problem, { cause: thrown });
  }
}

function textError(message: string, options?: ErrorOptions): AppError {
  return new AppError('invalid_spec', `The document ${message}`, {}, options);
}
