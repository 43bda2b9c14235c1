/** The commands of the redis driver: what a handler may send on connections that it shares with others, and how. */
import { decodeBase64 } from '../base64.js';
import { replaceBigIntegers } from '../exact-integers.js';
import { ServiceError } from '../service-error.js';

/** A command that may be sent. */
export interface RedisCommand {
  /** In capitals. */
  readonly name: string;
  readonly args: (string | Buffer)[];
}

const SHARED = 'the connection is shared with other calls';
const BLOCKS = 'it would hold up all others on the shared connection';
const TRANSACTION = `${SHARED}; use a Lua script (EVAL), which runs as one step`;
const SUBSCRIPTION = `${SHARED}; use a stream (XADD, XRANGE) or a list, and ask it again and again`;
const CREDENTIALS = 'user and password are those in the config of the service';
const SERVER = 'it is for those who run the server';

/**
 * Those of the server's administrators that are more than a look: they tell its password (CONFIG GET) or the arguments of others'
 * calls (SLOWLOG), change it, or reach the data of other databases.
 */
const ADMINISTRATION = [
  ...['ACL', 'BGREWRITEAOF', 'BGSAVE', 'CLUSTER', 'CONFIG', 'DEBUG', 'FAILOVER', 'LATENCY', 'MIGRATE'],
  ...['MODULE', 'PFDEBUG', 'PFSELFTEST', 'PSYNC', 'REPLCONF', 'REPLICAOF', 'RESTORE-ASKING', 'SAVE'],
  ...['SENTINEL', 'SHUTDOWN', 'SLAVEOF', 'SLOWLOG', 'SWAPDB', 'SYNC'],
];

/** Why a command is refused, and what to use instead. */
const REFUSED: ReadonlyMap<string, string> = new Map([
  ['SELECT', 'the database is the one in the config of the service'],
  ['AUTH', CREDENTIALS],
  ['HELLO', CREDENTIALS],
  ['QUIT', SHARED],
  ['RESET', SHARED],
  ['ASKING', SHARED],
  ['READONLY', SHARED],
  ['READWRITE', SHARED],
  ...['MULTI', 'EXEC', 'DISCARD', 'WATCH', 'UNWATCH'].map((name) => [name, TRANSACTION] as const),
  ...['SUBSCRIBE', 'PSUBSCRIBE', 'SSUBSCRIBE', 'UNSUBSCRIBE', 'PUNSUBSCRIBE', 'SUNSUBSCRIBE', 'MONITOR'].map(
    (name) => [name, SUBSCRIPTION] as const,
  ),
  ...Object.entries({
    BLPOP: 'LPOP',
    BRPOP: 'RPOP',
    BRPOPLPUSH: 'RPOPLPUSH',
    BLMOVE: 'LMOVE',
    BLMPOP: 'LMPOP',
    BZPOPMIN: 'ZPOPMIN',
    BZPOPMAX: 'ZPOPMAX',
    BZMPOP: 'ZMPOP',
  }).map(([name, instead]) => [name, `${BLOCKS}; use ${instead}`] as const),
  ['WAIT', BLOCKS],
  ['WAITAOF', BLOCKS],
  ...ADMINISTRATION.map((name) => [name, SERVER] as const),
]);

/** The subcommands of CLIENT that only look. */
const CLIENT_QUERIES = new Set(['ID', 'INFO', 'LIST', 'GETNAME', 'HELP']);

/**
 * Reads the payload of a `command` call.
 * @throws ServiceError invalid, for what is no command and for those that are refused
 */
export function readCommand(payload: Buffer): RedisCommand {
  const parts = parseList(payload);
  const [first, ...rest] = parts;
  if (typeof first !== 'string' || first === '') {
    throw new ServiceError('invalid', 'payload[0]: must be the name of a command');
  }
  const command = { name: first.toUpperCase(), args: rest.map((part, i) => readArgument(part, i + 1)) };
  const reason = refusal(command);
  if (reason !== undefined)
    throw new ServiceError('invalid', `payload: ${command.name} is refused: ${reason}`);
  return command;
}

function parseList(payload: Buffer): unknown[] {
  let value: unknown;
  try {
    // Redis takes numbers as texts anyway, and texts are exact.
    value = JSON.parse(replaceBigIntegers(payload.toString(), (digits) => `"${digits}"`));
  } catch (cause) {
    throw new ServiceError('invalid', 'payload: must be JSON', { cause });
  }
  if (!Array.isArray(value)) {
    throw new ServiceError('invalid', 'payload: must be an array of a command and its arguments');
  }
  return value;
}

function readArgument(value: unknown, index: number): string | Buffer {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return String(value);
  if (typeof value === 'object' && value !== null && 'base64' in value && typeof value.base64 === 'string') {
    const bytes = decodeBase64(value.base64);
    if (bytes) return bytes;
    throw new ServiceError('invalid', `payload[${index}].base64: must be base64`);
  }
  throw new ServiceError('invalid', `payload[${index}]: must be a text, a number or {"base64": "..."}`);
}

function refusal({ name, args }: RedisCommand): string | undefined {
  const words = () => args.map((argument) => argument.toString().toUpperCase());
  switch (name) {
    case 'CLIENT':
      return CLIENT_QUERIES.has(words()[0] ?? '')
        ? undefined
        : `${SHARED}; possible are ${[...CLIENT_QUERIES].map((word) => `CLIENT ${word}`).join(', ')}`;
    case 'SCRIPT':
      return words()[0] === 'DEBUG' ? SHARED : undefined;
    case 'XREAD':
    case 'XREADGROUP':
      return hasBlockOption(words()) ? `with BLOCK ${BLOCKS}; leave BLOCK out` : undefined;
    default:
      return REFUSED.get(name);
  }
}

/** How many values follow an option of XREAD and XREADGROUP: they may be spelled like options. */
const OPTION_VALUES: Readonly<Record<string, number>> = { COUNT: 1, GROUP: 2, CLAIM: 1 };

/** Whether BLOCK stands among the options, which end with STREAMS: what follows are keys. */
function hasBlockOption(words: readonly string[]): boolean {
  for (let i = 0; i < words.length; i += 1 + (OPTION_VALUES[words[i] ?? ''] ?? 0)) {
    if (words[i] === 'BLOCK') return true;
    if (words[i] === 'STREAMS') return false;
  }
  return false;
}

/** @throws ServiceError invalid */
export function readGetArgs(args: unknown): string {
  const key = (args as { readonly key?: unknown } | null | undefined)?.key;
  if (typeof key !== 'string') throw new ServiceError('invalid', 'args.key: must be a text');
  return key;
}

/**
 * The arguments of SET for a `set` call.
 * @throws ServiceError invalid
 */
export function readSetArgs(args: unknown, value: Buffer): (string | Buffer)[] {
  const command: (string | Buffer)[] = [readGetArgs(args), value];
  const { ttl_ms, only_if } = args as { readonly ttl_ms?: unknown; readonly only_if?: unknown };
  if (ttl_ms !== undefined && ttl_ms !== null) {
    if (typeof ttl_ms !== 'number' || !Number.isSafeInteger(ttl_ms) || ttl_ms < 1) {
      throw new ServiceError('invalid', 'args.ttl_ms: must be an integer of at least 1');
    }
    command.push('PX', String(ttl_ms));
  }
  if (only_if !== undefined && only_if !== null) {
    if (only_if !== 'absent' && only_if !== 'present') {
      throw new ServiceError('invalid', 'args.only_if: must be "absent" or "present"');
    }
    command.push(only_if === 'absent' ? 'NX' : 'XX');
  }
  return command;
}
