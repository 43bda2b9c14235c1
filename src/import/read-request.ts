/** Reads the body of a request that imports a document: JSON with the document as a text in it. */
import { readFile } from 'node:fs/promises';
import { AppError, toError } from '../errors.js';
import type { ImportedApi } from './imported-api.js';
import { toImportedApi } from './openapi/imported.js';
import { isObject } from './openapi/json.js';
import { readOpenApi } from './openapi/read-openapi.js';
import type { Fields } from './reader-messages.js';

/** The members beside the document are names and ids. */
const FIELDS_LIMIT = 65_536;

export interface RequestLimits {
  /** Largest document, bytes. */
  readonly specBytes: number;
  /** Most operations of a document. */
  readonly operations: number;
}

/** What a request has sent. */
export interface ReadRequest {
  /** The members of the body but `spec`. */
  readonly fields: Fields;
  /** What `spec` describes. */
  readonly api: ImportedApi;
}

/**
 * Reads the body in this file.
 * @throws AppError invalid_json, invalid_input, invalid_spec, body_too_large
 */
export async function readRequest(file: string, limits: RequestLimits): Promise<ReadRequest> {
  const body = parseBody(await readFile(file));
  if (!isObject(body)) throw new AppError('invalid_input', 'body: must be a JSON object');
  const { spec, ...fields } = body;
  if (spec === undefined) throw new AppError('invalid_input', 'body.spec: is required, an OpenAPI document');
  if (typeof spec !== 'string') {
    throw new AppError(
      'invalid_input',
      'body.spec: must be a string: the text of the document, YAML or JSON, not its content',
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
  return { fields, api: await readSpec(spec, limits) };
}

function parseBody(bytes: Buffer): unknown {
  if (bytes.length === 0) throw new AppError('invalid_input', 'body: is required, a JSON object');
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (thrown) {
    const cause = toError(thrown);
    throw new AppError('invalid_json', `The body is not valid JSON: ${cause.message}`, {}, { cause });
  }
}

async function readSpec(spec: string, limits: RequestLimits): Promise<ImportedApi> {
  try {
    return toImportedApi(await readOpenApi(spec, limits));
  } catch (thrown) {
    if (!(thrown instanceof AppError)) throw thrown;
    throw new AppError(thrown.code, `body.spec: ${thrown.message}`, thrown.extras, { cause: thrown });
  }
}
