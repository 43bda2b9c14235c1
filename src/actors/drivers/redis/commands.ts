/** The commands that handlers may send on the shared connections of the redis driver. */
import { replaceBigIntegers } from '../../exact-integers.js';
import { decodeBase64, invalid, payloadReader } from '../../operations.js';
import { Type } from '../../schema.js';

/** An allowed command. */
export interface RedisCommand {
  /** The name in upper case. */
  readonly name: string;
  readonly args: (string | Buffer)[];
}

const SHARED = 'the connection is shared with other calls';
const BLOCKS = 'it would hold up all others on the shared connection';
const TRANSACTION = `${SHARED}; a Lua script (EVAL) runs as one step, if the config has allow_scripts`;
const SUBSCRIPTION = `${SHARED}; use a stream (XADD, XRANGE) or a list, and poll it`;
const CREDENTIALS = 'user and password are those in the config of the service';
const SERVER = 'it is for those who run the server';
const OTHER_DATABASE = 'the database is the one in the config of the service';

/**
 * Administrative commands that show the password (CONFIG GET) or arguments of other calls (SLOWLOG), change the server,
 * or access other databases.
 */
const ADMINISTRATION = [
  ...['ACL', 'BGREWRITEAOF', 'BGSAVE', 'CLUSTER', 'CONFIG', 'DEBUG', 'FAILOVER', 'LATENCY', 'MIGRATE'],
  ...['MODULE', 'PFDEBUG', 'PFSELFTEST', 'PSYNC', 'REPLCONF', 'REPLICAOF', 'RESTORE-ASKING', 'SAVE'],
  ...['SENTINEL', 'SHUTDOWN', 'SLAVEOF', 'SLOWLOG', 'SWAPDB', 'SYNC'],
];

/** Why a command is refused, with an alternative. */
const REFUSED: ReadonlyMap<string, string> = new Map([
  ['SELECT', OTHER_DATABASE],
  ['MOVE', OTHER_DATABASE],
  ['FLUSHALL', `${OTHER_DATABASE}; use FLUSHDB`],
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

/**
 * Scripts and functions run any command but those that Redis refuses in scripts: also SELECT, which changes the shared
 * connection for all others, and administration.
 */
const SCRIPTS = new Set([
  'EVAL',
  'EVAL_RO',
  'EVALSHA',
  'EVALSHA_RO',
  'SCRIPT',
  'FCALL',
  'FCALL_RO',
  'FUNCTION',
]);

/** The subcommands of CLIENT that only read. */
const CLIENT_QUERIES = new Set(['ID', 'INFO', 'LIST', 'GETNAME', 'HELP']);

/** Numbers are sent as strings anyway; strings are exact. */
const readList = payloadReader(Type.Array(Type.Unknown()), (text) =>
  JSON.parse(replaceBigIntegers(text, (digits) => `"${digits}"`)),
);

/**
 * Parses the payload of a `command` call.
 * @param allowsScripts whether the config allows scripts and functions
 * @throws ServiceError `invalid` for an invalid or refused command
 */
export function readCommand(payload: Buffer, allowsScripts: boolean): RedisCommand {
  const [first, ...rest] = readList(payload);
  if (typeof first !== 'string' || first === '') throw invalid('payload[0]', 'must be the name of a command');
  const command = { name: first.toUpperCase(), args: rest.map((part, i) => readArgument(part, i + 1)) };
  const reason = refusal(command, allowsScripts);
  if (reason !== undefined) throw invalid('payload', `${command.name} is refused: ${reason}`);
  return command;
}

function readArgument(value: unknown, index: number): string | Buffer {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return String(value);
  if (typeof value === 'object' && value !== null && 'base64' in value && typeof value.base64 === 'string') {
    const bytes = decodeBase64(value.base64);
    if (bytes) return bytes;
    throw invalid(`payload[${index}].base64`, 'must be base64');
  }
  throw invalid(`payload[${index}]`, 'must be a string, a number or {"base64": "..."}');
}

function refusal({ name, args }: RedisCommand, allowsScripts: boolean): string | undefined {
  const words = () => args.map((argument) => argument.toString().toUpperCase());
  if (SCRIPTS.has(name) && !allowsScripts) {
    return 'scripts and functions are off, unless the config of the service has allow_scripts true';
  }
  switch (name) {
    case 'CLIENT':
      return CLIENT_QUERIES.has(words()[0] ?? '')
        ? undefined
        : `${SHARED}; possible are ${[...CLIENT_QUERIES].map((word) => `CLIENT ${word}`).join(', ')}`;
    case 'SCRIPT':
      return words()[0] === 'DEBUG' ? SHARED : undefined;
    case 'COPY':
      // After the two keys.
      return words().includes('DB', 2) ? OTHER_DATABASE : undefined;
    case 'XREAD':
    case 'XREADGROUP':
      return hasBlockOption(words()) ? `with BLOCK ${BLOCKS}; leave BLOCK out` : undefined;
    default:
      return REFUSED.get(name);
  }
}

/** Number of values after each option of XREAD and XREADGROUP. Values may look like options. */
const OPTION_VALUES: Readonly<Record<string, number>> = { COUNT: 1, GROUP: 2, CLAIM: 1 };

/** Whether BLOCK is among the options, which end with STREAMS; keys follow. */
function hasBlockOption(words: readonly string[]): boolean {
  for (let i = 0; i < words.length; i += 1 + (OPTION_VALUES[words[i] ?? ''] ?? 0)) {
    if (words[i] === 'BLOCK') return true;
    if (words[i] === 'STREAMS') return false;
  }
  return false;
}
