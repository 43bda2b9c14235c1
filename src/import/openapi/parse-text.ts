/** The text of a document as data: JSON or YAML. */
import { AppError } from '../../errors.js';
import { readYaml, YamlProblem } from '../yaml/read-yaml.js';
import { shortened } from './json.js';
import { MAX_DEPTH } from './survey.js';

const LIMITS = { depth: MAX_DEPTH, aliases: 10_000 };

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
  try {
    return readYaml(content, LIMITS).value;
  } catch (thrown) {
    if (!(thrown instanceof YamlProblem)) throw thrown;
    const { message, place } = thrown;
    const said = shortened(message.replace('is not YAML', 'is neither JSON nor YAML'));
    throw textError(place ? `${said} (${place})` : said, { cause: thrown });
  }
}

function textError(message: string, options?: ErrorOptions): AppError {
  return new AppError('invalid_spec', `The document ${message}`, {}, options);
}
