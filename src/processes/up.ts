/** Entry of `npm run up`: all processes on one machine, with an embedded database unless DATABASE_URL is set. */
import { existsSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { makeDataDirectory } from '../bootstrap/data-directory.js';
import { closeInheritedFiles } from '../bootstrap/inherited-files.js';
import { runDirectory } from '../bootstrap/run-directory.js';
import { type Config, inheritedEnvironment, loadConfig } from '../config.js';
import { toError } from '../errors.js';
import { killAbandoned } from '../sandbox/run-user.js';
import { loadSecretBox } from '../secrets/secret-box.js';
import { productToken } from '../secrets/service-token.js';
import { awaitSdk } from '../up/await-sdk.js';
import { type Child, runToEnd, startChild } from '../up/children.js';
import { lockDataDir } from '../up/lock.js';
import { requireFreePort } from '../up/ports.js';
import { ApiClient, deploySample, isSampleMissing, samplePath } from '../up/sample.js';
import { Terminal } from '../up/terminal.js';
import { HAS_UNTRUSTED_USERS } from '../util/untrusted-users.js';

/** Pause before a process is restarted; doubled after each failure. */
const RESTART_AFTER_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;
/** npm forwards Ctrl-C, so one press arrives twice; only a later one is a second press. */
const SAME_PRESS_MS = 500;
const SIGNAL_DELAY_MS = 200;
const POSTGRES = 'postgres';
const CLOSED_NOTE = `  HOST is not a loopback address and API_KEY is not set: the management API is closed until it has a user.
  Make the first admin in another terminal:  npm run user -- create-admin you@example.com`;

const terminal = new Terminal();
/** Processes in the order of their start; stopped in reverse order. */
const children: Child[] = [];
let ending: Promise<void> | undefined;
let endingSince = 0;
const isEnding = () => ending !== undefined;
let unlock: () => void = () => undefined;
let runDir: string | undefined;

closeInheritedFiles();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal);
// The reader of the output has ended, as in `npm run up | head`, or the terminal is closed.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => void end(0));
try {
  await up(loadConfig());
} catch (thrown) {
  // Ctrl-C also reaches the release process, whose end can be noticed before the signal.
  await delay(SIGNAL_DELAY_MS);
  // No error message after an interruption.
  if (!isEnding()) terminal.say(`\nEdge Gateway could not start. ${toError(thrown).message}`);
  await end(1);
}

function onSignal(): void {
  if (!isEnding()) {
    void end(0);
  } else if (performance.now() - endingSince > SAME_PRESS_MS) {
    terminal.say('Killing what has not ended ...');
    for (const child of children) child.kill();
  }
}

async function up(config: Config): Promise<void> {
  await makeDataDirectory(config.DATA_DIR);
  unlock = lockDataDir(config.DATA_DIR);
  terminal.openLog(config.DATA_DIR);
  runDir = await runDirectory(config.DATA_DIR);
  await requireFreePort('PORT', config.HOST, config.PORT);
  await requireFreePort('GATEWAY_PORT', config.HOST, config.GATEWAY_PORT);

  const env = {
    ...childEnvironment(),
    DATA_DIR: config.DATA_DIR,
    DATABASE_URL: config.DATABASE_URL ?? (await ownDatabase(config)),
  };
  await terminal.step('Migrating the database', () =>
    runToEnd('release', 'src/processes/release.js', env, terminal.log),
  );

  await terminal.step('Starting worker, web, gateway, actor-host', () =>
    Promise.all([
      start('worker', 'jobs/worker.js', env),
      start('web', 'src/processes/web.js', env),
      start('gateway', 'src/processes/gateway.js', env),
      start('actor-host', 'src/processes/actor-host.js', env),
    ]),
  );

  // The processes have made the key where there was none.
  const credential = config.API_KEY ?? productToken(await loadSecretBox(config));
  const api = new ApiClient(`http://${urlHost(config.HOST)}:${config.PORT}`, credential);
  await offerSample(api);
  showUrls(config, await samplePath(api), await sandboxInForce(api));
  terminal.started();
  await buildServicePrograms();
}

/** Builds what no answer so far has needed. Services that need it wait, and everything else is usable. */
async function buildServicePrograms(): Promise<void> {
  const build = startChild(
    'build-services',
    '../scripts/build-services.mjs',
    childEnvironment(),
    terminal.log,
  );
  children.push(build);
  try {
    await build.ready;
  } catch {
    // Its output says why.
    if (!isEnding())
      terminal.say(
        'Services of the types postgres and sqlite cannot run; the next `npm run up` tries it again.',
      );
  } finally {
    forget(build);
  }
}

/** Deploys the sample endpoint into an empty database. Without it everything else is usable. */
async function offerSample(api: ApiClient): Promise<void> {
  try {
    if (!(await isSampleMissing(api))) return;
    await terminal.step('Preparing the Rust SDK (compiles it, once)', () =>
      awaitSdk(api, (line) => terminal.progress(line)),
    );
    // That may have taken minutes, in which somebody has begun.
    if (!(await isSampleMissing(api))) return;
    await terminal.step('Deploying the sample endpoint', () => deploySample(api));
  } catch (thrown) {
    if (isEnding()) throw thrown;
    terminal.say(
      `  The sample endpoint is not deployed: ${toError(thrown).message}\n` +
        '  Everything else runs; the next `npm run up` tries it again.',
    );
  }
}

async function ownDatabase(config: Config): Promise<string> {
  const title = existsSync(join(config.DATA_DIR, 'postgres.password'))
    ? 'Starting PostgreSQL'
    : 'Starting PostgreSQL (makes its data folder, once)';
  return terminal.step(title, async () => {
    const { url } = await start(POSTGRES, 'src/processes/postgres.js', childEnvironment());
    return String(url);
  });
}

function childEnvironment(): NodeJS.ProcessEnv {
  // Processes cannot share one port; `/metrics` of web has the metrics of all of them.
  return { ...inheritedEnvironment(), METRICS_PORT: undefined };
}

/** Starts a process, waits until it is ready, and restarts it whenever it ends unexpectedly. */
async function start(
  name: string,
  entry: string,
  env: NodeJS.ProcessEnv,
): Promise<Readonly<Record<string, unknown>>> {
  if (isEnding()) throw new Error('ended while starting');
  const child = startChild(name, entry, env, terminal.log);
  children.push(child);
  const ready = await child.ready.catch((thrown: unknown) => {
    forget(child);
    throw thrown;
  });
  void child.failed.then((how) => restart(child, how, entry, env));
  return ready;
}

/** A failed process does not stop the others: it is restarted until it is ready. */
async function restart(child: Child, how: string, entry: string, env: NodeJS.ProcessEnv): Promise<void> {
  forget(child);
  if (isEnding()) return;
  if (child.name === POSTGRES) {
    // A restarted server would have another port, which the other processes do not know.
    terminal.say(`${POSTGRES} has ended: ${how}`);
    await end(1);
    return;
  }
  let reason = how;
  for (let pause = RESTART_AFTER_MS; !isEnding(); pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    terminal.say(`${child.name} ${reason}; starting it again`);
    await delay(pause);
    if (isEnding()) return;
    try {
      await start(child.name, entry, env);
      return;
    } catch (thrown) {
      reason = `could not be started (${toError(thrown).message})`;
    }
  }
}

function forget(child: Child): void {
  const at = children.indexOf(child);
  if (at >= 0) children.splice(at, 1);
}

function end(exitCode: number): Promise<void> {
  if (!ending) {
    endingSince = performance.now();
    ending = endAll(exitCode);
  }
  return ending;
}

async function endAll(exitCode: number): Promise<void> {
  const hasStarted = children.length > 0;
  if (hasStarted) {
    terminal.say('\nStopping (requests in flight are finished first; Ctrl-C again ends it at once) ...');
  }
  const [postgres] = children.filter(({ name }) => name === POSTGRES);
  try {
    await Promise.all(children.filter((child) => child !== postgres).map((child) => child.stop()));
    // The other processes need it until they have ended.
    await postgres?.stop();
    // A killed gateway or worker leaves handlers and compilers running.
    if (runDir !== undefined) await killAbandoned(runDir);
    if (hasStarted) terminal.say('Stopped.');
  } catch (thrown) {
    terminal.say(`Not everything could be stopped: ${toError(thrown).message}`);
    process.exitCode = 1;
  }
  unlock();
  process.exit(exitCode || process.exitCode);
}

/** The sandbox levels in use, in words. */
async function sandboxInForce(api: ApiClient): Promise<string> {
  const { sandbox } = (await api.get('/api/health')) as { sandbox: Record<string, string | null> };
  const levels = new Set(Object.values(sandbox));
  if (!levels.has('limits') && !levels.has(null)) return [...levels].join(', ');
  return HAS_UNTRUSTED_USERS
    ? 'none, only resource limits and separate users: code of handlers can read what every user of this machine can; docs/SANDBOX.md says what to do'
    : 'none, only resource limits: code of handlers can read what you can; docs/SANDBOX.md says what to do';
}

/** DATA_DIR, and the folders of the database and of sqlite services where these are elsewhere. */
function dataFolders({ DATA_DIR, DATABASE_URL }: Config): string {
  const names = DATABASE_URL === undefined ? ['postgres', 'sqlite'] : ['sqlite'];
  const folders = names.map((name) => join(DATA_DIR, name)).filter((folder) => existsSync(folder));
  const elsewhere = folders
    .map((folder) => realpathSync(folder))
    .filter((folder) => dirname(folder) !== realpathSync(DATA_DIR));
  return [DATA_DIR, ...elsewhere].join(' and ');
}

function showUrls(config: Config, path: string | undefined, sandbox: string): void {
  const host = urlHost(config.HOST);
  const api = `http://${host}:${config.PORT}`;
  const gateway = `http://${host}:${config.GATEWAY_PORT}`;
  terminal.say(`
Edge Gateway is up.

  Gateway         ${gateway}
  Web UI          ${api}/ui
  Management API  ${api}/api
  API description ${api}/api/openapi.json
  Queues          ${api}/queues
  Metrics         ${api}/metrics
  Data            ${dataFolders(config)}
${terminal.logFile === undefined ? '' : `  Log             ${terminal.logFile}\n`}  Sandbox         ${sandbox}
${path === undefined ? '' : `\n  Try it:  curl ${gateway}${path}\n`}
  Ctrl-C stops everything; the next \`npm run up\` continues with the same data.
${isClosed(config) ? `\n${CLOSED_NOTE}\n` : ''}`);
}

/** Whether nobody gets in before there is a user. */
function isClosed({ HOST, API_KEY }: Config): boolean {
  return API_KEY === undefined && !/^(localhost|127\.\d+\.\d+\.\d+|::1)$/.test(HOST);
}

/** An address that a client on this machine can use. */
function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost';
  return host.includes(':') ? `[${host}]` : host;
}
