/** The configuration: the only reader of `process.env`. Process entries call `loadConfig` once and pass values on. */
import { join, resolve } from 'node:path';
import { SETTINGS, type Setting } from './settings.js';

type Environment = Readonly<Record<string, string | undefined>>;

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
  if (values['HTTP_REDIRECT'] === true && values['TLS_PORT'] === undefined)
    problems.push('HTTP_REDIRECT: needs TLS_PORT, where requests are redirected to.');
  if (values['ACME_DIRECTORY_URL'] !== undefined && values['TLS_PORT'] === undefined)
    problems.push('ACME_DIRECTORY_URL: needs TLS_PORT, where certificates are shown.');
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

/** The whole environment, for child processes that are part of the product. */
export function inheritedEnvironment(
  environment: Environment = process.env,
): Record<string, string | undefined> {
  return { ...environment };
}

/** What root has prepared for a process that has given up rights since (`src/rights/give-up.ts`). */
export interface ProcessPreparation {
  /** Whom the process runs as. */
  readonly user: number;
  /** The folder for sockets. */
  readonly runDir: string;
  /** What the operator should know of it, to be logged. */
  readonly notes: readonly Note[];
  /** The descriptor of what starts the processes of services for an actor host (`rust/starter`). */
  readonly starter?: number;
}

/** A line of the log. */
export interface Note {
  readonly level: 'info' | 'warn' | 'error';
  readonly details: object;
  readonly message: string;
}

/** Internal: it is set where root has prepared the process. */
const PREPARED = 'EDGE_PREPARED';

/** Undefined when this process has the rights that it was started with. */
export function preparedProcess(environment: Environment = process.env): ProcessPreparation | undefined {
  const text = environment[PREPARED];
  if (text === undefined) return undefined;
  const prepared = JSON.parse(text) as ProcessPreparation;
  // One that somebody has passed on to another process says nothing about that.
  return prepared.user === process.getuid?.() ? prepared : undefined;
}

/**
 * The environment of this process, for the one that it becomes.
 * @param changes instead of what it has
 */
export function preparedEnvironment(
  prepared: ProcessPreparation,
  changes: Readonly<Record<string, string>>,
  environment: Environment = process.env,
): Record<string, string> {
  const all = { ...environment, ...changes, [PREPARED]: JSON.stringify(prepared) };
  return Object.fromEntries(
    Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}

/** Files that the driver of the database reads: those of its TLS, and one with passwords. */
export function databaseFiles(environment: Environment = process.env): string[] {
  const { DATABASE_URL = '', PGPASSFILE, HOME = '/' } = environment;
  const { searchParams } = URL.canParse(DATABASE_URL) ? new URL(DATABASE_URL) : new URL('postgres:');
  const ofTls = ['sslcert', 'sslkey', 'sslrootcert'].flatMap((name) => searchParams.get(name) ?? []);
  return [...ofTls, PGPASSFILE ?? join(HOME, '.pgpass')].map((path) => resolve(path));
}

/** Which certificates the operator trusts: the path of a file, or those of folders with colons between them. */
export const CERTIFICATE_VARIABLES = ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'SSL_CERT_DIR'] as const;

/** The paths in one of these variables. */
export function certificatePaths(name: (typeof CERTIFICATE_VARIABLES)[number], value: string): string[] {
  return (name === 'SSL_CERT_DIR' ? value.split(':') : [value]).filter((path) => path !== '');
}

/** Options of Node that say the same. */
const TRUST_OPTIONS = /--use-(?:openssl|bundled|system)-ca\b/g;

/** The environment of processes that must not get the configuration. */
export function isolatedEnvironment(environment: Environment = process.env): Record<string, string> {
  const options = environment['NODE_OPTIONS']?.match(TRUST_OPTIONS)?.join(' ');
  const { TZ } = environment;
  return {
    ...certificateEnvironment(environment),
    ...(TZ !== undefined && { TZ }),
    ...(options !== undefined && { NODE_OPTIONS: options }),
  };
}

/** The variables of certificates, for a process with another working directory. */
export function certificateEnvironment(environment: Environment = process.env): Record<string, string> {
  const absolute = (name: (typeof CERTIFICATE_VARIABLES)[number], value: string) =>
    certificatePaths(name, value)
      .map((path) => resolve(path))
      .join(':');
  const entries = CERTIFICATE_VARIABLES.flatMap((name) => {
    const value = environment[name];
    return value === undefined ? [] : [[name, absolute(name, value)] as const];
  });
  return Object.fromEntries(entries);
}
