/** An embedded PostgreSQL server: data folder, start and stop. Tests use it too. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { access, chown, lstat, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { findPlace, type ServerUser } from './postgres-place.js';
import { installPrograms, type Programs } from './postgres-programs.js';

export interface ServerOptions {
  /**
   * The data is in `postgres` in this folder, which is a symbolic link if the server's user cannot enter the folder.
   */
  readonly folder: string;
  /** The superuser of the database, with this password. */
  readonly user: string;
  readonly password: string;
  /** Additional arguments of `initdb`. */
  readonly initdbArguments?: readonly string[];
  /** Each `name=value`. */
  readonly settings?: readonly string[];
  /** Called with the output of the programs. */
  readonly onLog?: (text: string) => void;
}

/** Sessions are ended at once; processes that remain after this are killed. */
const STOP_LIMIT_MS = 20_000;
/** The last lines of output in an error. */
const OUTPUT_LINES = 20;
/** Variable in the environment of the server: the id of the process that started it. */
export const PARENT_VARIABLE = 'EDGE_GATEWAY_PARENT';
/** `setpriv` is part of util-linux. Without it, the next start stops a server whose parent was killed. */
const WITH_PARENT_DEATH_SIGNAL = `
  signal=$1; shift
  if setpriv --pdeathsig keep true 2> /dev/null; then exec setpriv --pdeathsig "$signal" -- "$@"; fi
  exec "$@"`;
const READY = 'database system is ready to accept connections';

const execute = promisify(execFile);

export class PostgresServer {
  /** The data folder, symbolic links resolved. */
  readonly data: string;
  readonly port: number;
  readonly #user: ServerUser | undefined;
  readonly #programs: Programs;
  readonly #options: ServerOptions;
  readonly #output: string[] = [];
  #process: ChildProcess | undefined;

  private constructor(
    data: string,
    port: number,
    user: ServerUser | undefined,
    programs: Programs,
    options: ServerOptions,
  ) {
    this.data = data;
    this.port = port;
    this.#user = user;
    this.#programs = programs;
    this.#options = options;
  }

  /**
   * Creates the data folder if there is none; does not start the server.
   * @throws Error saying what to do, or with the output of the programs
   */
  static async open(options: ServerOptions): Promise<PostgresServer> {
    const { data, user } = await findPlace(options.folder);
    const programs = await installPrograms(join(dirname(data), 'postgres-programs'));
    const server = new PostgresServer(data, await freePort(), user, programs, options);
    if (!(await exists(join(data, 'PG_VERSION')))) await server.#initialise();
    await server.#takeOver();
    return server;
  }

  /**
   * Resolves when it accepts connections.
   * @throws Error with its output
   */
  async start(): Promise<void> {
    const listening = [`port=${this.port}`, 'listen_addresses=127.0.0.1', 'unix_socket_directories='];
    // Readiness is recognised by its output.
    const settings = [...listening, 'lc_messages=C', ...(this.#options.settings ?? [])];
    const args = ['-D', this.data, ...settings.flatMap((setting) => ['-c', setting])];
    const child = this.#spawn('INT', this.#programs.postgres, args);
    this.#process = child;
    await new Promise<void>((resolve, reject) => {
      child.stderr?.on('data', (text: string) => {
        if (text.includes(READY)) resolve();
      });
      child.once('error', reject);
      child.once('close', () => reject(this.#failure('PostgreSQL did not start')));
    });
  }

  /** Ends all sessions and the server, if it runs. */
  async stop(): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGINT');
    const force = setTimeout(() => child.kill('SIGQUIT'), STOP_LIMIT_MS);
    await ended;
    clearTimeout(force);
  }

  /** Deletes the data of a stopped server, and its programs. */
  async remove(): Promise<void> {
    const place = dirname(this.data);
    for (const path of [
      this.data,
      join(place, 'postgres-programs'),
      join(this.#options.folder, 'postgres'),
    ]) {
      await rm(path, { recursive: true, force: true });
    }
    if (place !== this.#options.folder) await rm(place, { recursive: true });
  }

  /** Creates the folder atomically: an incomplete data folder cannot be recognised, and is unusable. */
  async #initialise(): Promise<void> {
    const { user, password, initdbArguments = [] } = this.#options;
    const unfinished = `${this.data}.new`;
    await rm(unfinished, { recursive: true, force: true });
    await mkdir(unfinished, { mode: 0o700 });
    const passwordFile = join(unfinished, 'password');
    await writeFile(passwordFile, `${password}\n`, { mode: 0o600 });
    for (const path of [unfinished, passwordFile]) await this.#give(path);

    const data = join(unfinished, 'data');
    const child = this.#spawn('KILL', this.#programs.initdb, [
      `--pgdata=${data}`,
      `--username=${user}`,
      `--pwfile=${passwordFile}`,
      ...['--auth=scram-sha-256', '--encoding=UTF8', '--locale=C'],
      ...initdbArguments,
    ]);
    const code = await new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', resolve);
    });
    if (code !== 0) throw this.#failure('The data folder of PostgreSQL could not be made');
    await rename(data, this.data);
    await rm(unfinished, { recursive: true });
  }

  /** Makes the user of the server the owner: restored files belong to root, or have the ids of another machine. */
  async #takeOver(): Promise<void> {
    if (!this.#user || (await lstat(this.data)).uid === this.#user.uid) return;
    await execute('chown', ['-hR', `${this.#user.uid}:${this.#user.gid}`, '--', this.data]);
  }

  async #give(path: string): Promise<void> {
    if (this.#user) await chown(path, this.#user.uid, this.#user.gid);
  }

  /**
   * Starts a program in a separate process group, without the environment of this process, which holds secrets. It gets
   * the signal when this process ends for any reason.
   */
  #spawn(endSignal: 'INT' | 'KILL', program: string, args: readonly string[]): ChildProcess {
    const child = spawn('/bin/sh', ['-c', WITH_PARENT_DEATH_SIGNAL, 'sh', endSignal, program, ...args], {
      ...this.#user,
      // The server's user may be unable to enter that of this process.
      cwd: '/',
      env: { LC_ALL: 'C', PATH: '/usr/bin:/bin', [PARENT_VARIABLE]: String(process.pid), PGDATA: this.data },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#options.onLog?.(text.trimEnd());
        this.#output.push(...text.trimEnd().split('\n'));
        this.#output.splice(0, this.#output.length - OUTPUT_LINES);
      });
    }
    return child;
  }

  #failure(what: string): Error {
    return new Error(`${what}. Its last output:\n${this.#output.join('\n') || '(nothing)'}`);
  }
}

/** A free TCP port. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => {
        if (typeof address === 'object' && address !== null) resolve(address.port);
        else reject(new Error('A TCP server has no port'));
      });
    });
  });
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
