/** Reads OpenAPI documents from untrusted text. */

import type { KeptDocument } from '../../model/imported-parts.js';
import type { ValidateMode } from '../../model/policies/validate.js';
import { isObject, type JsonObject } from '../../util/json-object.js';
import { storable } from '../../util/text.js';
import { type Warn, Warnings } from '../warnings.js';
import type { OpenApiDocument } from './document.js';
import { documentError, own, shortened } from './json.js';
import { keptDocument, keptJson, NotKept } from './kept-document.js';
import { descriptionFrom, readOperations } from './operations.js';
import { type Bundle, OtherFiles } from './other-files.js';
import { type ParsedText, parseText, repeatedKeyText } from './parse-text.js';
import { requirePaths } from './path-items.js';
import { References } from './references.js';
import { scanDocument } from './scan.js';
import { basePathOf } from './servers.js';
import { flawsOf, type SpecificationVersion } from './validate.js';

/** Limit of a collection's name, characters. */
const MAX_TITLE_LENGTH = 255;
const DEFAULT_TITLE = 'API';

/** How a document is read. */
export interface OpenApiOptions {
  /** Most operations. */
  readonly operations: number;
  /** Whether requests are to be validated; by default they are not. */
  readonly validation?: ValidateMode;
}

/**
 * Reads a document of OpenAPI 3 or Swagger 2.0. Parts that cannot be read are left out with a warning. Nothing is
 * fetched or read from disk.
 * @param text YAML or JSON
 * @param bundle the files beside the document
 * @throws AppError invalid_spec when it cannot be read at all
 */
export async function readOpenApi(
  text: string,
  options: OpenApiOptions,
  bundle?: Bundle,
): Promise<OpenApiDocument> {
  try {
    return await read(parseText(text), options, bundle);
  } catch (thrown) {
    // Stack overflow: the text is nested, or its schemas reference each other, thousands of levels deep.
    if (!(thrown instanceof RangeError)) throw thrown;
    throw documentError('/', 'is nested too deeply, or has too long chains of references', { cause: thrown });
  }
}

async function read(
  { value: parsed, json, repeatedKeys }: ParsedText,
  options: OpenApiOptions,
  bundle?: Bundle,
): Promise<OpenApiDocument> {
  const warnings = new Warnings();
  const warn = warnings.add;
  if (!isObject(parsed)) throw documentError('/', `is not an OpenAPI document, but ${whatIs(parsed)}`);
  warnings.addEach('flaws', repeatedKeys, repeatedKeyText);
  const files = await OtherFiles.load(parsed, warn, bundle);
  const specification = versionOf(parsed, warn);
  const isSwagger = specification === '2.0';
  requirePaths(parsed, options.operations);
  // It takes longest: it begins at once where nothing has to be done for it.
  const keptAsSent = json !== undefined && files.areNone && !isSwagger ? keptOf(keptJson(json), warn) : null;
  const scan = scanDocument(parsed);
  warnings.addEach('flaws', flawsOf(parsed, specification), (flaw) => flaw);
  const original = new References(parsed, scan, files);
  const document = isSwagger ? await converted(parsed, original, warn) : parsed;
  const references = isSwagger ? new References(document, scanDocument(document), files) : original;
  references.check(warn);

  const { title, version, description } = readInfo(document, warn);
  const basePath = basePathOf(document, warn);
  const kept = keptAsSent ?? keptOf(keptDocument(document, files), warn);
  const operations = readOperations(document, references, basePath, options, warn);
  if (operations.length === 0) {
    const reasons = warnings.list().slice(0, 5);
    const shown = reasons.map(({ text }) => shortened(text)).join('; ');
    throw documentError('/paths', `has no operation that can be imported${shown && `: ${shown}`}`);
  }
  return { title, version, description, basePath, operations, kept: await kept, warnings: warnings.list() };
}

/** What a value is that is no object. */
function whatIs(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'string' ? `text: ${shortened(value)}` : shortened(JSON.stringify(value ?? null));
}

async function keptOf(keeping: Promise<KeptDocument>, warn: Warn): Promise<KeptDocument | null> {
  try {
    return await keeping;
  } catch (thrown) {
    if (!(thrown instanceof NotKept)) throw thrown;
    warn('document', `The document is not kept for exports: ${thrown.message}`);
    return null;
  }
}

async function converted(document: JsonObject, references: References, warn: Warn): Promise<JsonObject> {
  // Only loaded for such a document.
  const { convertSwagger } = await import('./convert-swagger.js');
  return convertSwagger(document, references, warn);
}

function versionOf(document: JsonObject, warn: Warn): SpecificationVersion {
  const swagger = own(document, 'swagger');
  if (swagger !== undefined) {
    // Without quotes, 2.0 is the number 2.
    if (swagger === 2 || swagger === '2.0') return '2.0';
    throw documentError('/swagger', `must be "2.0", not ${shortened(JSON.stringify(swagger))}`);
  }
  const version = own(document, 'openapi');
  if (version === undefined) {
    throw documentError(
      '/openapi',
      'is missing: not an OpenAPI document; it names the version, for example "3.1.0"',
    );
  }
  // Without quotes, 3.0 is the number 3.
  const [, known] = /^(3\.[012])(?:\.\d+(?:-.*)?)?$/.exec(version === 3 ? '3.0' : String(version)) ?? [];
  if (known !== '3.0' && known !== '3.1' && known !== '3.2') {
    const shown = shortened(JSON.stringify(version));
    throw documentError('/openapi', `must be a version of OpenAPI 3 such as "3.1.0", not ${shown}`);
  }
  if (known === '3.2') warn('document', '/openapi: of 3.2, only what 3.1 has too is read');
  return known;
}

function readInfo(document: JsonObject, warn: Warn) {
  const value = own(document, 'info');
  const info = isObject(value) ? value : {};
  const described = own(info, 'description');
  return {
    title: titleFrom(own(info, 'title'), warn),
    version: String(own(info, 'version') ?? ''),
    description: descriptionFrom([described, own(info, 'summary')], '/info/description', warn),
  };
}

/** The title, which names the collection. */
function titleFrom(value: unknown, warn: Warn): string {
  const text = typeof value === 'string' || typeof value === 'number' ? String(value) : '';
  const title = storable(text.replace(/[\s\p{Cc}]+/gu, ' ').trim());
  if (title === '') {
    warn('document', `/info/title: is missing; the API is called "${DEFAULT_TITLE}"`);
    return DEFAULT_TITLE;
  }
  if (title.length <= MAX_TITLE_LENGTH) return title;
  warn('document', `/info/title: is truncated to ${MAX_TITLE_LENGTH} characters`);
  return `${title.slice(0, MAX_TITLE_LENGTH - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}
