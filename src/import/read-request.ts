/** Reads the body of a request that imports a document: JSON with the document's text in the member `spec`. */
import { readFile } from 'node:fs/promises';
import { AppError, toError } from '../errors.js';
import type { ValidateMode } from '../model/policies/validate.js';
import { isObject } from '../util/json-object.js';
import { utf8Text } from '../util/text.js';
import { endpointOf, type ImportedApi } from './imported-api.js';
import { readOpenApi } from './openapi/read-openapi.js';
import type { Fields } from './reader-messages.js';

/** Limit of the other members, which are names and ids, characters. */
const FIELDS_LIMIT = 65_536;

export interface RequestLimits {
  /** Largest document, bytes. */
  readonly specBytes: number;
  /** Most operations of a document. */
  readonly operations: number;
}

export interface ReadRequest {
  /** The members of the body but `spec`. */
  readonly fields: Fields;
  /** The API that `spec` describes. */
  readonly api: ImportedApi;
}

/**
 * @param file path of the body
 * @throws AppError invalid_json, invalid_input, invalid_spec, body_too_large
 */
export async function readRequest(
  file: string,
  limits: RequestLimits,
  validation: ValidateMode = 'off',
): Promise<ReadRequest> {
  const body = parseBody(await readFile(file));
  if (!isObject(body)) throw new AppError('invalid_input', 'body: must be a JSON object');
  const { spec, ...fields } = body;
  if (spec === undefined) throw new AppError('invalid_input', 'body.spec: is required, an OpenAPI document');
  if (typeof spec !== 'string') {
    throw new AppError(
      'invalid_input',
      'body.spec: must be a string with the text of the document, YAML or JSON, not the parsed document',
    );
  }
  if (JSON.stringify(fields).length > FIELDS_LIMIT) {
    throw new AppError('invalid_input', `body: has more than ${FIELDS_LIMIT} characters beside "spec"`);
  }
  if (Buffer.byteLength(spec) > limits.specBytes) {
    throw new AppError(
      'body_too_large',
      `body.spec: is larger than ${limits.specBytes} bytes (SPEC_LIMIT_BYTES)`,
    );
  }
  return { fields, api: await readSpec(spec, limits, validation) };
}

function parseBody(bytes: Buffer): unknown {
  if (bytes.length === 0) throw new AppError('invalid_input', 'body: is required, a JSON object');
  try {
    return JSON.parse(utf8Text(bytes));
  } catch (thrown) {
    const cause = toError(thrown);
    throw new AppError('invalid_json', `The body is not valid JSON: ${cause.message}`, {}, { cause });
  }
}

async function readSpec(spec: string, limits: RequestLimits, validation: ValidateMode): Promise<ImportedApi> {
  try {
    const { title, description, basePath, operations, kept, warnings } = await readOpenApi(spec, {
      ...limits,
      validation,
    });
    const endpoints = operations.map((operation) => endpointOf(operation, title, null));
    return {
      kind: 'document',
      title,
      description,
      basePath,
      endpoints,
      dependencies: null,
      bindings: [],
      warnings,
      ...(validation !== 'off' && { validation }),
      document: kept,
      problems: [],
      contents: new Map(),
    };
  } catch (thrown) {
    if (!(thrown instanceof AppError)) throw thrown;
    throw new AppError(thrown.code, `body.spec: ${thrown.message}`, thrown.extras, { cause: thrown });
  }
}
