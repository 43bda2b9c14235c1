/**
 * The operations of a driver, each with the schema of its arguments. Arguments are checked only here, so all drivers
 * report errors in the same words: `args.key: must be a string, not a number`.
 */
import type { Check, Problem } from '../model/problems.js';
import { MAX_BODY_BYTES } from '../wire/codec.js';
import { checkOf } from './checks.js';
import type { DriverCall } from './driver-call.js';
import { type Static, type TObject, type TSchema, Type } from './schema.js';
import { ServiceError } from './service-error.js';

/** The answer to a call. */
export interface DriverAnswer {
  /** Small JSON; see `exact-json.ts` for the allowed values. */
  readonly result?: unknown;
  /** Bytes, or JSON text. */
  readonly payload?: Uint8Array | string;
}

/** An operation that handlers may call. */
export interface ServiceOperation<Target, Args extends TObject = TObject> {
  readonly args: Args;
  /**
   * @param target an open connection, or a transaction on one
   * @throws ServiceError
   */
  run(target: Target, args: Static<Args>, call: DriverCall): Promise<DriverAnswer>;
}

/** An operation with its compiled schema. */
export interface CheckedOperation<Target> {
  /** @throws ServiceError `invalid` naming the argument */
  check(args: unknown): unknown;
  /** @param args as `check` returned them */
  run(target: Target, args: unknown, call: DriverCall): Promise<DriverAnswer>;
}

export const NO_ARGS = Type.Object({});

export function checkedOperation<Target, Args extends TObject>(
  operation: ServiceOperation<Target, Args>,
): CheckedOperation<Target> {
  const check = checkOf(operation.args);
  return {
    check: (args) => requireFit(check, 'args', args ?? {}),
    run: (target, args, call) => operation.run(target, args as Static<Args>, call),
  };
}

/**
 * Creates a parser of JSON payloads.
 * @param parse throws on a syntax error
 * @param language the name of the format that `parse` reads
 * @returns a function that throws a ServiceError `invalid` naming the wrong member
 */
export function payloadReader<S extends TSchema>(
  schema: S,
  parse: (text: string) => unknown = JSON.parse,
  language = 'JSON',
): (payload: Buffer | string) => Static<S> {
  const check = checkOf(schema);
  return (payload) => {
    let value: unknown;
    try {
      value = parse(payload.toString());
    } catch (cause) {
      throw invalid(
        'payload',
        `must be ${language}: ${cause instanceof Error ? cause.message : cause}`,
        cause,
      );
    }
    return requireFit(check, 'payload', value);
  };
}

/** The error of an argument or of a member of a payload. */
export function invalid(where: string, problem: string, cause?: unknown): ServiceError {
  return new ServiceError('invalid', `${where}: ${problem}`, { cause });
}

/** On the hot path: allocates nothing for valid arguments. */
function requireFit<S extends TSchema>(check: Check, root: string, value: unknown): Static<S> {
  const problem = check(value);
  if (problem) throw invalid(root + pathText(problem), problem.message);
  return value as Static<S>;
}

function pathText({ path }: Problem): string {
  return path.map((key) => (/^\d+$/.test(key) ? `[${key}]` : `.${key}`)).join('');
}

/** Bytes in JSON, as base64. */
export const Base64 = Type.String({
  refine: (text: string) => (decodeBase64(text) ? undefined : 'must be base64'),
});

/** Decodes base64 with padding; undefined when the text is not base64. */
export function decodeBase64(text: string): Buffer | undefined {
  if (text.length % 4 !== 0) return undefined;
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
  const bytes = Buffer.from(text, 'base64');
  // Node skips invalid characters, which makes the result too short.
  return bytes.length === (text.length / 4) * 3 - padding ? bytes : undefined;
}

/**
 * To be called while an unbounded answer grows.
 * @throws ServiceError `invalid` when the bytes do not fit into a frame
 */
export function requireSendable(bytes: number): void {
  if (bytes <= MAX_BODY_BYTES) return;
  throw new ServiceError(
    'invalid',
    `the answer has at least ${bytes} bytes, and ${MAX_BODY_BYTES} is the most a handler can get: ask for less`,
  );
}
