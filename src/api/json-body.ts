/** Reads a JSON body: its type, its size and its syntax are checked here, its content by the schema of the route. */
import bodyParser from 'koa-bodyparser';
import { AppError, toError } from '../errors.js';
import type { ApiContext } from './context.js';

const JSON_TYPES = ['application/json', 'application/*+json'];
const parsers = new Map<number, ReturnType<typeof bodyParser>>();

/**
 * The body of the request, an object.
 * @throws AppError when there is none, or when it is too large or something else than a JSON object
 */
export async function readJsonBody(
  context: ApiContext,
  limitBytes: number,
): Promise<Record<string, unknown>> {
  requireJsonType(context);
  try {
    // The parser does not notice when a compressed body breaks off.
    await Promise.race([parserFor(limitBytes)(context, async () => undefined), brokenOff(context)]);
  } catch (thrown) {
    throw bodyError(thrown, limitBytes, context.get('Content-Encoding'));
  }
  const { body } = context.request;
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new AppError('invalid_input', 'body: must be a JSON object');
  }
  return body as Record<string, unknown>;
}

/** Never resolves; rejects when the client leaves before its body is complete. */
function brokenOff({ req }: ApiContext): Promise<never> {
  return new Promise((_, reject) => {
    req.once('close', () => {
      if (!req.complete) reject(new AppError('malformed_request', 'The body breaks off'));
    });
  });
}

/** @throws AppError when there is no body, or one that is not said to be JSON */
export function requireJsonType(context: ApiContext): void {
  // `is` answers null when there is no body at all, false when it is of another type.
  const type = context.request.length === 0 ? null : context.request.is(JSON_TYPES);
  if (type === null) throw new AppError('invalid_input', 'body: is required, a JSON object');
  if (type === false) {
    throw new AppError(
      'unsupported_media_type',
      `The body must be sent as application/json, not ${context.request.type || 'without a Content-Type'}`,
    );
  }
}

function parserFor(limitBytes: number): ReturnType<typeof bodyParser> {
  let parser = parsers.get(limitBytes);
  if (!parser) {
    parser = bodyParser({
      enableTypes: ['json'],
      extendTypes: { json: JSON_TYPES },
      jsonLimit: `${limitBytes}b`,
      strict: false,
    });
    parsers.set(limitBytes, parser);
  }
  return parser;
}

function bodyError(thrown: unknown, limitBytes: number, encoding: string): Error {
  if (thrown instanceof AppError) return thrown;
  const error = toError(thrown);
  const status = 'status' in error ? error.status : undefined;
  if (status === 413) {
    return new AppError(
      'body_too_large',
      `The body is larger than ${limitBytes} bytes (API_BODY_LIMIT_BYTES)`,
      {},
      { cause: error },
    );
  }
  if (status === 415) return new AppError('unsupported_media_type', error.message, {}, { cause: error });
  if (status === 400) {
    return new AppError('invalid_json', `The body is not valid JSON: ${error.message}`, {}, { cause: error });
  }
  // The errors of zlib, which unpacks the body, have numbers and no status.
  if (encoding !== '' && 'errno' in error) {
    return new AppError(
      'invalid_input',
      `body: cannot be unpacked as ${encoding}: ${error.message}`,
      {},
      { cause: error },
    );
  }
  return error;
}
