/** The contexts of this user: gateways with their tokens, in a file that nobody else reads. */
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { configFolder, givenAccess } from './environment.js';
import { CliError, UsageError } from './errors.js';

export interface Context {
  readonly url: string;
  /** Undefined for an API that is open. */
  readonly token?: string;
}

export interface Config {
  readonly current?: string;
  readonly contexts: Readonly<Record<string, Context>>;
}

const LOGIN = 'Run `edge login URL`, or set EDGE_URL (and EDGE_TOKEN).';

export function configFile(): string {
  return join(configFolder(), 'config.json');
}

/** @throws CliError when the file is there and has something else */
export function readConfig(): Config {
  let text: string;
  try {
    text = readFileSync(configFile(), 'utf8');
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') return { contexts: {} };
    throw new CliError(`${configFile()} cannot be read: ${(thrown as Error).message}`, {
      code: 'config_unreadable',
    });
  }
  const config = parsed(text);
  if (config) return config;
  throw new CliError(`${configFile()} has no contexts in it`, {
    code: 'config_unreadable',
    hint: 'Remove the file, and run `edge login URL` again.',
  });
}

function parsed(text: string): Config | undefined {
  try {
    const { current, contexts } = JSON.parse(text) as Partial<Config>;
    const isOk = Object.values(contexts ?? {}).every((context) => typeof context.url === 'string');
    if (typeof contexts !== 'object' || !isOk) return undefined;
    return { contexts, ...(typeof current === 'string' && { current }) };
  } catch {
    return undefined;
  }
}

/** Writes the file as a whole, so that whoever reads it meanwhile sees the old one or the new one. */
export function writeConfig(config: Config): void {
  const folder = configFolder();
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  chmodSync(folder, 0o700);
  const unfinished = join(folder, `.config.${randomBytes(6).toString('hex')}`);
  try {
    writeFileSync(unfinished, `${JSON.stringify(config, null, 2)}\n`, { mode: 0o600, flag: 'wx' });
    renameSync(unfinished, configFile());
  } finally {
    rmSync(unfinished, { force: true });
  }
}

/** A gateway that a command talks to. */
export interface Access extends Context {
  /** The context that it is from; undefined: the environment. */
  readonly name?: string;
}

/**
 * The gateway of a command: that of `--context`, else of the environment, else of the current context. A token of a
 * context goes to the gateway of that context only.
 */
export function accessOf(contextName: string | undefined): Access {
  const given = givenAccess();
  if (contextName === undefined && given.url !== undefined) {
    const url = normalUrl(given.url, 'EDGE_URL');
    const kept = Object.values(readConfig().contexts).find((context) => context.url === url);
    const token = given.token ?? kept?.token;
    return { url, ...(token !== undefined && { token }) };
  }
  const { current, contexts } = readConfig();
  const name = contextName ?? current;
  if (name === undefined) throw new CliError('No gateway is configured', { code: 'no_context', hint: LOGIN });
  const context = contexts[name];
  if (!context) throw unknownContext(name, contexts);
  const token = contextName === undefined ? (given.token ?? context.token) : context.token;
  return { name, url: context.url, ...(token !== undefined && { token }) };
}

export function unknownContext(name: string, contexts: Config['contexts']): UsageError {
  const names = Object.keys(contexts).join(', ') || 'none';
  return new UsageError(`There is no context ${name}`, `There are: ${names}.`);
}

/** The address of a gateway without what all paths begin with. @param from for the message */
export function normalUrl(text: string, from: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !['http:', 'https:'].includes(url.protocol))
    throw new UsageError(`${from}: ${text} is no URL`, 'Such as http://127.0.0.1:8081.');
  if (url.username !== '' || url.password !== '')
    throw new UsageError(
      `${from}: the URL must not have a password`,
      'The token is asked for, or read from stdin.',
    );
  return `${url.origin}${url.pathname.replace(/\/+$/, '').replace(/\/api$/, '')}`;
}
