/** The arguments of memcached calls, from handlers, as the bytes the binary protocol has for them. */
import { ServiceError } from '../service-error.js';

const MAX_KEY_BYTES = 250;
const SPACE_OR_CONTROL = /[\p{Cc} ]/u;
/** Longer times would be taken for moments. */
const LONGEST_RELATIVE_S = 30 * 24 * 60 * 60;
/** The server reads moments as signed 32 bit integers. */
const LAST_MOMENT_S = 0x7fff_ffff;
/** In place of a time to live: count only what is there. */
const DO_NOT_CREATE = 0xffff_ffff;

interface Args {
  readonly key?: unknown;
  readonly ttl_seconds?: unknown;
  readonly by?: unknown;
  readonly initial?: unknown;
}

/** @throws ServiceError invalid */
export function readKey(args: unknown): string {
  const key = (args as Args | null | undefined)?.key;
  if (typeof key !== 'string') throw invalid('key', 'must be a text');
  const bytes = Buffer.byteLength(key);
  if (bytes < 1 || bytes > MAX_KEY_BYTES) throw invalid('key', `must have 1 to ${MAX_KEY_BYTES} bytes`);
  if (SPACE_OR_CONTROL.test(key)) throw invalid('key', 'must not have spaces or control characters');
  return key;
}

/**
 * The time to live.
 * @throws ServiceError invalid
 */
export function readStoreArgs(args: unknown): Buffer {
  return uint32(readExpiration(args));
}

/**
 * How to count: the step, what to begin with, and the time to live of a new number.
 * @throws ServiceError invalid
 */
export function readCounterArgs(args: unknown): Buffer {
  const { by, initial, ttl_seconds } = args as Args;
  const step = readAmount('by', by);
  const hasInitial = initial !== undefined && initial !== null;
  if (!hasInitial && ttl_seconds !== undefined && ttl_seconds !== null) {
    throw invalid('ttl_seconds', 'is only for a number that is made, so it needs "initial"');
  }
  const extras = Buffer.alloc(20);
  extras.writeBigUInt64BE(step, 0);
  extras.writeBigUInt64BE(hasInitial ? readAmount('initial', initial) : 0n, 8);
  extras.writeUInt32BE(hasInitial ? readExpiration(args) : DO_NOT_CREATE, 16);
  return extras;
}

/** Seconds, or the moment when they are many; 0 is for ever. */
function readExpiration(args: unknown): number {
  const { ttl_seconds: ttl } = args as Args;
  if (ttl === undefined || ttl === null) return 0;
  if (typeof ttl !== 'number' || !Number.isSafeInteger(ttl) || ttl < 1) {
    throw invalid('ttl_seconds', 'must be an integer of at least 1');
  }
  if (ttl <= LONGEST_RELATIVE_S) return ttl;
  const now = Math.floor(Date.now() / 1000);
  if (now + ttl > LAST_MOMENT_S) {
    throw invalid('ttl_seconds', `must be at most ${LAST_MOMENT_S - now}; leave it out to keep the value`);
  }
  return now + ttl;
}

function readAmount(name: string, value: unknown): bigint {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) {
    throw invalid(name, `must be an integer from 0 to ${Number.MAX_SAFE_INTEGER}`);
  }
  return BigInt(value);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

function invalid(member: string, problem: string): ServiceError {
  return new ServiceError('invalid', `args.${member}: ${problem}`);
}
