/**
 * Reads a JSON body, or a text that stands for one of its members, and checks its type, size and syntax; the schema of
 * the route validates its content.
 */

import type { ParameterizedContext } from 'koa';
import bodyParser from 'koa-bodyparser';
import { AppError, toError } from '../../errors.js';
import { utf8Text } from '../../util/text.js';

const JSON_TYPES = ['application/json', 'application/*+json'];
/** Media types of a member that is sent as text. */
const TEXT_TYPES = ['text/*'];
const PROTOTYPE = '__proto__';
/** Characters of a place in a message. */
const MAX_PLACE = 300;
/** Most values in a body: small ones take long to read, and no route needs more. */
const MAX_VALUES = 50_000;
const parsers = new Map<number, ReturnType<typeof bodyParser>>();

/**
 * The body of the request, an object.
 * @param textMember the member that can be sent alone, as text of any type; this one is named in errors
 * @throws AppError when there is none, when it is too large, or when it is not a JSON object
 */
export async function readBody(
  context: ParameterizedContext,
  limitBytes: number,
  textMember?: { readonly member: string; readonly mediaType: string },
): Promise<Record<string, unknown>> {
  const isText = textMember !== undefined && isTextBody(context);
  if (!isText) requireJsonType(context, textMember ? [textMember.mediaType] : []);
  // It was looked up who sends it, and the client has left meanwhile.
  if (context.req.destroyed && !context.req.complete)
    throw new AppError('malformed_request', 'The request was aborted before the end of its body');
  try {
    // The parser does not detect an aborted compressed body.
    await Promise.race([parserFor(limitBytes)(context, async () => undefined), rejectWhenAborted(context)]);
  } catch (thrown) {
    throw bodyError(thrown, limitBytes, context.get('Content-Encoding'));
  }
  // The parser is told to give bytes.
  const bytes = context.request.body as Buffer;
  if (isText) return { [textMember.member]: textOf(bytes) };
  const body = bytes.length === 0 ? undefined : jsonOf(bytes);
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new AppError('invalid_input', 'body: must be a JSON object');
  }
  return withoutPrototype(body as Record<string, unknown>);
}

function textOf(bytes: Buffer): string {
  try {
    return utf8Text(bytes);
  } catch (thrown) {
    const cause = toError(thrown);
    throw new AppError('invalid_input', `body: ${cause.message}; send it as UTF-8`, {}, { cause });
  }
}

function jsonOf(bytes: Buffer): unknown {
  if (hasTooManyValues(bytes))
    throw new AppError('invalid_input', `body: has more than ${MAX_VALUES} values`);
  try {
    return JSON.parse(utf8Text(bytes));
  } catch (thrown) {
    const cause = toError(thrown);
    throw new AppError('invalid_json', `The body is not valid JSON: ${cause.message}`, {}, { cause });
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const BRACKET = 0x5b;
const BRACE = 0x7b;

/** Found out before any of them is made: each comes after one of three bytes. Texts are skipped, which may be code. */
function hasTooManyValues(bytes: Buffer): boolean {
  let values = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] as number;
    if (byte === QUOTE) at = endOfText(bytes, at);
    else if ((byte === COMMA || byte === BRACKET || byte === BRACE) && ++values > MAX_VALUES) return true;
  }
  return false;
}

/** Where the quote is that ends the text which begins here; the end of all where there is none. */
function endOfText(bytes: Buffer, start: number): number {
  for (let end = bytes.indexOf(QUOTE, start + 1); end !== -1; end = bytes.indexOf(QUOTE, end + 1)) {
    let before = end - 1;
    while (bytes[before] === BACKSLASH) before--;
    // An even number of them: none escapes the quote.
    if ((end - before) % 2 === 1) return end;
  }
  return bytes.length;
}

/** A value within a body, and where it is. */
interface NestedValue {
  readonly value: object;
  readonly key: string;
  readonly holder?: NestedValue;
}

/**
 * A member that would be the prototype of others gets lost on the way: what is stored would not be what was sent.
 * @throws AppError where there is one
 */
function withoutPrototype(body: Record<string, unknown>): Record<string, unknown> {
  const pending: NestedValue[] = [{ value: body, key: 'body' }];
  for (let one = pending.pop(); one; one = pending.pop()) {
    if (Object.hasOwn(one.value, PROTOTYPE))
      throw new AppError('invalid_input', `${placeOf(one)}.${PROTOTYPE}: is not accepted; leave it out`);
    for (const [key, value] of Object.entries(one.value) as [string, unknown][])
      if (typeof value === 'object' && value !== null) pending.push({ value, key, holder: one });
  }
  return body;
}

function placeOf(placed: NestedValue): string {
  const keys: string[] = [];
  for (let one: NestedValue | undefined = placed; one; one = one.holder) keys.push(one.key);
  const place = keys.reverse().join('.');
  return place.length > MAX_PLACE ? `${place.slice(0, MAX_PLACE)}…` : place;
}

function isTextBody({ request }: ParameterizedContext): boolean {
  return request.length !== 0 && typeof request.is(TEXT_TYPES) === 'string';
}

/** Never resolves; rejects when the client aborts the request before its body is complete. */
function rejectWhenAborted({ req }: ParameterizedContext): Promise<never> {
  return new Promise((_, reject) => {
    req.once('close', () => {
      if (!req.complete)
        reject(new AppError('malformed_request', 'The request was aborted before the end of its body'));
    });
  });
}

export function hasBody({ request }: ParameterizedContext): boolean {
  // `is` returns null without a body.
  return request.length !== 0 && request.is(JSON_TYPES) !== null;
}

/**
 * @param others media types that could also be sent, for the message
 * @throws AppError without a body, or with one of another type
 */
export function requireJsonType(context: ParameterizedContext, others: readonly string[] = []): void {
  if (!hasBody(context)) {
    throw new AppError('invalid_input', `body: is required, ${['a JSON object', ...others].join(' or ')}`);
  }
  if (context.request.is(JSON_TYPES) === false) {
    throw new AppError(
      'unsupported_media_type',
      `The body must be sent as ${['application/json', ...others].join(' or ')}, not ${context.request.type || 'without a Content-Type'}`,
    );
  }
}

function parserFor(limitBytes: number): ReturnType<typeof bodyParser> {
  let parser = parsers.get(limitBytes);
  if (!parser) {
    parser = bodyParser({
      enableTypes: ['text'],
      extendTypes: { text: [...JSON_TYPES, ...TEXT_TYPES] },
      textLimit: `${limitBytes}b`,
      // Bytes: as a text, they would lose what is not UTF-8 without an error.
      encoding: null,
    } as bodyParser.Options);
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
  if (status === 400)
    return new AppError(
      'malformed_request',
      `The body did not arrive: ${error.message}`,
      {},
      { cause: error },
    );
  if (status === 415) return new AppError('unsupported_media_type', error.message, {}, { cause: error });
  // Errors of zlib have an errno and no status.
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
