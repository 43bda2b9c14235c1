/**
 * The configuration: the only reader of `process.env`. Process entries call `loadConfig` once and pass values on.
 * `SETTINGS` is also what the configuration table in the README is checked against.
 */
import { availableParallelism, totalmem } from 'node:os';
import { resolve } from 'node:path';

/** What the operator asks of the sandbox. */
export const SANDBOX_MODES = ['auto', 'required', 'off'] as const;
const HANDLER_NETWORKS = ['none', 'host'] as const;

type Environment = Readonly<Record<string, string | undefined>>;

interface Setting<T> {
  /** The default as the README shows it. */
  readonly shown: string;
  /** What it does, units included. */
  readonly description: string;
  /** Turns the text of the variable (undefined when unset or empty) into its value; throws with a reason. */
  readonly read: (text: string | undefined) => T;
}

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

/** Every environment variable the product reads. */
export const SETTINGS = {
  DATABASE_URL: text(
    'embedded server',
    'PostgreSQL connection URL. Without it `npm run up` starts an embedded server in `DATA_DIR`.',
  ),
  REDIS_URL: text(
    'none',
    'Redis connection URL for the job queues. Without it the queues live in PostgreSQL.',
  ),
  HOST: textWithDefault('127.0.0.1', 'Address the management API and the gateway listen on.'),
  PORT: integer(8081, 0, 65535, 'Port of the management API.'),
  GATEWAY_PORT: integer(8080, 0, 65535, 'Port of the gateway: the public HTTP traffic.'),
  DATA_DIR: textWithDefault('./data', 'Folder for all state of this machine.'),
  ARTIFACTS_URL: text(
    '`DATA_DIR/artifacts`',
    'Where compiled handlers are kept: a folder, or `s3://bucket/prefix` for several machines. One for each database: what no endpoint and no build of the last month uses is deleted from it.',
  ),
  S3_ENDPOINT: text('AWS', 'URL of the S3 server behind an `s3://` `ARTIFACTS_URL`.'),
  S3_REGION: textWithDefault('us-east-1', 'Region of the artifact bucket.'),
  S3_ACCESS_KEY: text('none', 'Access key of the artifact bucket.'),
  S3_SECRET_KEY: text('none', 'Secret key of the artifact bucket.'),
  API_KEY: text(
    'none',
    'When set, every path of the management API but `/api/health` needs `Authorization: Bearer <key>`.',
  ),
  ALLOWED_HOSTS: text(
    'none',
    'Comma-separated host names, besides IP addresses and localhost, under which browsers may reach the API.',
  ),
  SECRET_KEY: text(
    '`DATA_DIR/secret.key`',
    'Key that encrypts service configs at rest (16 characters or more). Made and kept in `DATA_DIR` when unset; must be the same on all machines.',
  ),
  SANDBOX: oneOf(
    SANDBOX_MODES,
    'auto',
    'What confines handlers and compilers: `auto` takes bubblewrap where it works, `required` does not start without it, `off` leaves resource limits only.',
  ),
  LOG_LEVEL: oneOf(LOG_LEVELS, 'info', 'Lowest level that is logged.'),
  // One more than there are cores: while one compiler waits for its files or its linker, another has work.
  WORKER_CONCURRENCY: integer(
    availableParallelism() + 1,
    1,
    256,
    'Compilers one worker process runs at a time.',
    'cores + 1',
  ),
  GATEWAY_CONCURRENCY: integer(
    availableParallelism(),
    1,
    256,
    'Front processes of a gateway that share its port.',
    'cores',
  ),
  METRICS_PORT: optionalInteger(
    0,
    65535,
    'When set, the process also serves its own `/metrics` on this port of `HOST`. `npm run up` leaves it out: `/metrics` of the management API has all processes of a machine.',
  ),
  COMPILE_TIMEOUT_MS: integer(120_000, 100, 3_600_000, 'Time limit of one compiler run, milliseconds.'),
  COMPILE_MEMORY_MB: integer(4096, 256, 1_048_576, 'Address space of one compiler process, MiB.'),
  COMPILE_TOTAL_MEMORY_MB: integer(
    Math.floor(totalmem() / 2 / 1024 / 1024),
    256,
    1_048_576,
    'Memory of all processes of one build together, MiB. A build that is found using more is ended.',
    'half of the machine',
  ),
  COMPILE_CPU_SECONDS: integer(600, 1, 86_400, 'CPU time of one compiler process, seconds.'),
  COMPILE_DISK_MB: integer(
    4096,
    16,
    1_048_576,
    'What one build may write, in all, MiB. It is looked at from time to time, and a build that has gone over it is ended.',
  ),
  COMPILE_PROCESSES: integer(
    1024,
    16,
    1_048_576,
    'Processes and threads of one build at a time, where there is a sandbox.',
  ),
  COMPILE_WAIT_MS: integer(
    180_000,
    1,
    3_600_000,
    'How long a compile request waits for its build before it answers 504, milliseconds.',
  ),
  START_TIMEOUT_MS: integer(
    10_000,
    100,
    600_000,
    'How long a handler may take to become ready, and start or stop to be seen on all gateways, milliseconds.',
  ),
  REQUEST_TIMEOUT_MS: integer(
    30_000,
    1,
    3_600_000,
    'Deadline of one request in a handler, milliseconds. Like the next five, an endpoint may set a lower one in its `limits`.',
  ),
  HANDLER_MEMORY_MB: integer(1024, 64, 1_048_576, 'Memory of all processes of one handler, MiB.'),
  HANDLER_PROCESSES: integer(
    512,
    16,
    1_000_000,
    'Processes and threads of one handler; in force only where handlers run in a sandbox.',
  ),
  HANDLER_OPEN_FILES: integer(1024, 32, 1_048_576, 'Open files and connections of one handler process.'),
  HANDLER_CPU_PERCENT: optionalInteger(
    1,
    102_400,
    'CPU time of one handler, percent of one core, averaged over ten seconds. A handler that uses more is ended.',
  ),
  HANDLER_CONCURRENT_REQUESTS: integer(
    4096,
    1,
    65_536,
    'Requests in one handler at the same time, divided among the fronts of a gateway; more get 429.',
  ),
  HANDLER_NETWORK: oneOf(
    HANDLER_NETWORKS,
    'none',
    'What handlers in a sandbox can connect to: with `none` only services bound to them, with `host` whatever this machine can.',
  ),
  HANDLER_THREADS: integer(64, 1, 4096, 'Requests one handler process works on at the same time.'),
  SERVICE_TIMEOUT_MS: integer(
    10_000,
    1,
    3_600_000,
    'Deadline of a call of a service for which the handler names none, milliseconds.',
  ),
  SERVICE_QUEUE_LIMIT: integer(
    1_000,
    0,
    1_000_000,
    'Calls that may wait for a free connection of one service; more are refused.',
  ),
  SERVICE_MEMORY_MB: integer(
    512,
    64,
    1_048_576,
    'Payloads of service calls and unread answers that an actor host holds at a time, MiB; more calls are refused.',
  ),
  SQLITE_DIR: text('none', 'When set, the files of sqlite services must be in this folder.'),
  REDACT_SECRETS: flag('When true, the API shows `***` instead of the secrets in service configs.'),
  ACTOR_HOST_PORT: optionalInteger(
    1,
    65535,
    'When set, the actor host also serves the management API of other machines on this port of `HOST`.',
  ),
  UPLOAD_LIMIT_BYTES: integer(
    5 * 1024 ** 3,
    1,
    Number.MAX_SAFE_INTEGER,
    'Largest file that can be uploaded to an object storage, bytes.',
    '5 GiB',
  ),
  API_BODY_LIMIT_BYTES: integer(
    4 * 1024 * 1024,
    1024,
    67_108_864,
    'Largest JSON body the management API accepts, bytes.',
    '4 MiB',
  ),
  SPEC_LIMIT_BYTES: integer(
    32 * 1024 * 1024,
    1024,
    268_435_456,
    'Largest OpenAPI document that can be imported, bytes.',
    '32 MiB',
  ),
  BUNDLE_LIMIT_BYTES: integer(
    64 * 1024 * 1024,
    1024,
    4_294_967_295,
    'Largest ZIP bundle that can be imported, bytes.',
    '64 MiB',
  ),
  BUNDLE_UNPACKED_LIMIT_BYTES: integer(
    256 * 1024 * 1024,
    1024,
    4_294_967_295,
    'Most that all files of a bundle may unpack to, bytes.',
    '256 MiB',
  ),
  BUNDLE_ENTRIES_LIMIT: integer(10_000, 1, 65_535, 'Most files and folders a bundle may have.'),
  IMPORT_OPERATIONS_LIMIT: integer(5_000, 1, 100_000, 'Most operations one import may bring.'),
  IMPORT_READ_TIMEOUT_MS: integer(
    30_000,
    100,
    3_600_000,
    'How long reading one document or bundle may take, milliseconds.',
  ),
  IMPORT_READ_MEMORY_MB: integer(
    1024,
    64,
    1_048_576,
    'Heap of the process that reads one document or bundle, MiB.',
  ),
  IMPORT_WAIT_MS: integer(
    600_000,
    1,
    3_600_000,
    'How long an import request waits for its handlers to be compiled and started before it answers 504, milliseconds.',
  ),
  GATEWAY_BODY_LIMIT_BYTES: integer(
    10 * 1024 * 1024,
    0,
    67_108_864,
    'Largest request body the gateway passes to a handler, bytes.',
    '10 MiB',
  ),
  GATEWAY_CONNECTIONS_LIMIT: integer(
    16_384,
    1,
    1_000_000,
    'Client connections one front process of the gateway holds; more are refused. Never more than 80 % of the file descriptors it may have.',
  ),
  API_CONNECTIONS_LIMIT: integer(16_384, 1, 1_000_000, 'The same for one process of the management API.'),
  HTTP_HEAD_TIMEOUT_MS: integer(
    20_000,
    100,
    3_600_000,
    'How long both servers wait for the head of a request, milliseconds.',
  ),
  HTTP_IDLE_TIMEOUT_MS: integer(
    75_000,
    100,
    3_600_000,
    'How long a connection stays open between requests, milliseconds. Longer than load balancers in front keep theirs.',
  ),
  HTTP_PATIENCE_MS: integer(
    20_000,
    100,
    3_600_000,
    'How long a connection may bring too little of a body, or take too little of an answer, milliseconds.',
  ),
  HTTP_MIN_BYTES_PER_SECOND: integer(
    1_024,
    1,
    1_073_741_824,
    'What is too little in that time, bytes a second on average.',
  ),
  // For each front, so much that the largest answer can arrive and be sent.
  GATEWAY_MEMORY_MB: integer(
    256 * availableParallelism(),
    16,
    1_048_576,
    'Bodies of requests and of answers not read yet that a gateway holds at a time, MiB, divided among its fronts; more get 503.',
    '256 for each core',
  ),
} as const satisfies Record<string, Setting<unknown>>;

type Settings = typeof SETTINGS;
type Values = { readonly [K in keyof Settings]: ReturnType<Settings[K]['read']> };

/** The validated configuration of a process, one member per environment variable. */
export type Config = Values;

/** A variable has a value that cannot be used. Its message names the variable and what it takes. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/**
 * Reads and validates the environment.
 * @throws ConfigError naming every variable that is wrong.
 */
export function loadConfig(environment: Environment = process.env): Config {
  const values: Record<string, unknown> = {};
  const problems: string[] = [];
  for (const [name, setting] of Object.entries<Setting<unknown>>(SETTINGS)) {
    try {
      values[name] = setting.read(environment[name] || undefined);
    } catch (thrown) {
      problems.push(`${name}: ${thrown instanceof Error ? thrown.message : String(thrown)}`);
    }
  }
  if (problems.length > 0) throw new ConfigError(problems.join('\n'));
  const config = values as Values;
  return { ...config, DATA_DIR: resolve(config.DATA_DIR) };
}

/**
 * Like `loadConfig`, for processes that cannot work without a database.
 * @throws ConfigError when DATABASE_URL is missing.
 */
export function loadProcessConfig(
  environment: Environment = process.env,
): Config & { readonly DATABASE_URL: string } {
  const config = loadConfig(environment);
  const { DATABASE_URL } = config;
  if (DATABASE_URL === undefined) {
    throw new ConfigError(
      'DATABASE_URL: is not set. Give a PostgreSQL URL, or use `npm run up`, which brings its own server.',
    );
  }
  return { ...config, DATABASE_URL };
}

// What rustc and cargo need to find themselves and the crate registry. No credentials of ours, nor cargo's own.
const TOOL_VARIABLES =
  /^(PATH|HOME|TMPDIR|LANG|RUSTUP_HOME|RUSTUP_TOOLCHAIN|CARGO_HOME|CARGO_(HTTP|NET|SOURCE)_.*|SSL_CERT_(FILE|DIR)|(https?|all|no)_proxy)$/i;

/** The environment that build tools get: an allow-list, so that no secret of the service can slip through. */
export function toolEnvironment(environment: Environment = process.env): Record<string, string> {
  const allowed: Record<string, string> = {};
  for (const [name, value] of Object.entries(environment)) {
    if (value !== undefined && TOOL_VARIABLES.test(name)) allowed[name] = value;
  }
  return allowed;
}

/** Where programs are looked for. */
export function searchPath(environment: Environment = process.env): string {
  return environment['PATH'] ?? '';
}

/** The whole environment, for child processes that are part of the product. */
export function inheritedEnvironment(
  environment: Environment = process.env,
): Record<string, string | undefined> {
  return { ...environment };
}

function text(shown: string, description: string): Setting<string | undefined> {
  return { shown, description, read: (value) => value };
}

function textWithDefault(fallback: string, description: string): Setting<string> {
  return { shown: `\`${fallback}\``, description, read: (value) => value ?? fallback };
}

function integer(
  fallback: number,
  min: number,
  max: number,
  description: string,
  shown = String(fallback),
): Setting<number> {
  return {
    shown,
    description,
    read: (value) => {
      if (value === undefined) return fallback;
      const number = /^\d+$/.test(value) ? Number(value) : Number.NaN;
      if (!(number >= min && number <= max))
        throw new Error(`must be a whole number from ${min} to ${max}, not "${value}"`);
      return number;
    },
  };
}

function optionalInteger(min: number, max: number, description: string): Setting<number | undefined> {
  const { read } = integer(min, min, max, description);
  return { shown: 'none', description, read: (value) => (value === undefined ? undefined : read(value)) };
}

function flag(description: string): Setting<boolean> {
  return {
    shown: '`false`',
    description,
    read: (value) => {
      if (value === undefined || value === 'false' || value === '0') return false;
      if (value === 'true' || value === '1') return true;
      throw new Error(`must be true or false, not "${value}"`);
    },
  };
}

function oneOf<T extends string>(choices: readonly T[], fallback: T, description: string): Setting<T> {
  return {
    shown: `\`${fallback}\``,
    description: `${description} One of ${choices.join(', ')}.`,
    read: (value) => {
      if (value === undefined) return fallback;
      const choice = choices.find((candidate) => candidate === value);
      if (choice === undefined) throw new Error(`must be one of ${choices.join(', ')}, not "${value}"`);
      return choice;
    },
  };
}
