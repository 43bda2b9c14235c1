/** Reads OpenAPI documents from untrusted text. */
import { AppError } from '../../errors.js';
import { type Warn, Warnings } from '../warnings.js';
import type { OpenApiDocument } from './document.js';
import { entriesOf, isObject, type JsonObject, own, pointerOf, shortened, specError } from './json.js';
import { descriptionFrom, readOperations } from './operations.js';
import { parseText } from './parse-text.js';
import { References } from './references.js';
import { scanDocument } from './scan.js';
import { basePathOf } from './servers.js';
import { validateDocument } from './validate.js';

/** Limit of a collection's name, characters. */
const MAX_TITLE_LENGTH = 255;

export interface OpenApiLimits {
  /** Most operations. */
  readonly operations: number;
}

/**
 * Reads an OpenAPI 3.0 or 3.1 document. Nothing is fetched or read from disk.
 * @param text YAML or JSON
 * @throws AppError invalid_spec naming the location and what to do
 */
export async function readOpenApi(text: string, limits: OpenApiLimits): Promise<OpenApiDocument> {
  try {
    return await read(parseText(text), limits);
  } catch (thrown) {
    // Stack overflow: the text is nested, or its schemas reference each other, thousands of levels deep.
    if (!(thrown instanceof RangeError)) throw thrown;
    throw specError('/', 'is nested too deeply, or has too long chains of references', { cause: thrown });
  }
}

async function read(document: unknown, limits: OpenApiLimits): Promise<OpenApiDocument> {
  requireOpenApi(document);
  const references = new References(document, scanDocument(document));
  requirePaths(document, limits);
  await validateDocument(document, references);

  const warnings = new Warnings();
  const { title, version, description } = readInfo(document, warnings.add);
  const basePath = basePathOf(document);
  const operations = readOperations(document, references, basePath, limits.operations, warnings.add);
  if (operations.length === 0) {
    const reasons = warnings.list().slice(0, 5).join('; ');
    throw specError('/paths', `has no operation that can be imported${reasons && `: ${reasons}`}`);
  }
  return { title, version, description, basePath, operations, warnings: warnings.list() };
}

function requireOpenApi(document: unknown): asserts document is JsonObject {
  if (!isObject(document)) throw specError('/', 'is not an OpenAPI document: it has no members');
  const swagger = own(document, 'swagger');
  if (swagger !== undefined) {
    throw new AppError(
      'invalid_spec',
      'The document is Swagger 2.0, which cannot be imported; convert it to OpenAPI 3, for example with swagger2openapi or editor.swagger.io',
    );
  }
  const version = own(document, 'openapi');
  if (version === undefined) {
    throw specError(
      '/openapi',
      'is missing: not an OpenAPI document; it names the version, for example "3.1.0"',
    );
  }
  if (typeof version !== 'string' || !/^3\.[01]\.\d+(-.*)?$/.test(version)) {
    const shown = shortened(JSON.stringify(version));
    throw specError('/openapi', `must be a version 3.0.x or 3.1.x such as "3.1.0", not ${shown}`);
  }
}

/** Cheap checks before the validation, which takes minutes for hundreds of thousands of paths. */
function requirePaths(document: JsonObject, { operations: limit }: OpenApiLimits): void {
  const paths = entriesOf(own(document, 'paths')).filter(([path]) => !path.startsWith('x-'));
  if (paths.length > limit) {
    throw specError('/paths', `has more than ${limit} paths (IMPORT_OPERATIONS_LIMIT)`);
  }
  for (const [path, item] of paths) {
    if (!path.startsWith('/')) throw specError(pointerOf(['paths', path]), 'a path must begin with "/"');
    if (!isObject(item)) throw specError(pointerOf(['paths', path]), 'must be an object with operations');
  }
}

function readInfo(document: JsonObject, warn: Warn) {
  const info = own(document, 'info');
  if (!isObject(info)) throw specError('/info', 'must be an object with title and version');
  const title = String(own(info, 'title')).trim().replace(/\s+/g, ' ');
  if (title === '') throw specError('/info/title', 'must not be empty; it names the collection');
  if (title.length > MAX_TITLE_LENGTH || /\p{Cc}/u.test(title)) {
    throw specError(
      '/info/title',
      `must be at most ${MAX_TITLE_LENGTH} characters of text, without control characters`,
    );
  }
  return {
    title,
    version: String(own(info, 'version')),
    description: descriptionFrom([own(info, 'description'), own(info, 'summary')], '/info/description', warn),
  };
}
