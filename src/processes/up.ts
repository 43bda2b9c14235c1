/** Entry of `npm run up`: all processes of one machine, with a database of their own unless one is given. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Config, inheritedEnvironment, loadConfig, SETTINGS } from '../config.js';
import { makeDataDirectory } from '../data-directory.js';
import { toError } from '../errors.js';
import { closeInheritedFiles } from '../inherited-files.js';
import { killLeftovers } from '../limited-process.js';
import { type Child, runToEnd, startChild } from '../up/children.js';
import { lockDataDir } from '../up/lock.js';
import { requireFreePort } from '../up/ports.js';
import { ApiClient, deploySample, isEmpty, samplePath } from '../up/sample.js';
import { Terminal } from '../up/terminal.js';

/** Before a process is started again; twice as long after each try that failed. */
const RESTART_AFTER_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;
/** npm passes Ctrl-C on, so that one press arrives twice; only what comes later than this is a second press. */
const SAME_PRESS_MS = 500;
const POSTGRES = 'postgres';
const OPEN_WARNING = `  WARNING: HOST is not a loopback address and API_KEY is not set. Whoever reaches the management API can run any
  program on this machine. Set API_KEY, or leave HOST out.`;

const terminal = new Terminal();
/** In the order of their start; ended in the reverse order. */
const children: Child[] = [];
let ending: Promise<void> | undefined;
let endingSince = 0;
const isEnding = () => ending !== undefined;
let unlock: () => Promise<void> = async () => undefined;

if (process.argv.includes('--help')) {
  showHelp();
} else {
  closeInheritedFiles();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal);
  try {
    await up(loadConfig());
  } catch (thrown) {
    // Whoever ends it while it starts wants no reasons.
    if (!isEnding()) terminal.say(`\nEdge Gateway could not start. ${toError(thrown).message}`);
    await end(1);
  }
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
  unlock = await lockDataDir(config.DATA_DIR);
  await requireFreePort('PORT', config.HOST, config.PORT);
  await requireFreePort('GATEWAY_PORT', config.HOST, config.GATEWAY_PORT);

  const env = {
    ...childEnvironment(),
    DATA_DIR: config.DATA_DIR,
    DATABASE_URL: config.DATABASE_URL ?? (await ownDatabase(config)),
  };
  await terminal.step('Migrating the database', () =>
    runToEnd('release', 'src/processes/release', env, terminal.log),
  );

  const isFirst = !existsSync(join(config.DATA_DIR, 'build'));
  const title = isFirst ? 'Starting worker (compiles the Rust SDK, once)' : 'Starting worker';
  await Promise.all([
    terminal.step(title, () => start('worker', 'jobs/worker', env)),
    terminal.step('Starting web, gateway, actor-host', () =>
      Promise.all([
        start('web', 'src/processes/web', env),
        start('gateway', 'src/processes/gateway', env),
        start('actor-host', 'src/processes/actor-host', env),
      ]),
    ),
  ]);

  const api = new ApiClient(`http://${urlHost(config.HOST)}:${config.PORT}`, config.API_KEY);
  if (await isEmpty(api)) await terminal.step('Deploying the sample endpoint', () => deploySample(api));
  showUrls(config, await samplePath(api), await sandboxInForce(api));
  terminal.showLogs();
}

async function ownDatabase(config: Config): Promise<string> {
  const title = existsSync(join(config.DATA_DIR, 'postgres.password'))
    ? 'Starting PostgreSQL'
    : 'Starting PostgreSQL (makes its data folder, once)';
  return terminal.step(title, async () => {
    const { url } = await start(POSTGRES, 'src/processes/postgres', childEnvironment());
    return String(url);
  });
}

function childEnvironment(): NodeJS.ProcessEnv {
  // One port cannot serve them all; `/metrics` of web has what all of them measure.
  return { ...inheritedEnvironment(), METRICS_PORT: undefined };
}

/** Starts a process, waits until it is ready, and starts it again whenever it ends by itself. */
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

/** One process that is away is no reason to take the others away too: it is tried again until it is there. */
async function restart(child: Child, how: string, entry: string, env: NodeJS.ProcessEnv): Promise<void> {
  forget(child);
  if (isEnding()) return;
  if (child.name === POSTGRES) {
    // It would come back on another port, which the others do not know.
    terminal.say(`${POSTGRES} cannot go on: ${how}`);
    await end(1);
    return;
  }
  let reason = how;
  for (let pause = RESTART_AFTER_MS; !isEnding(); pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    terminal.say(`${child.name} ${reason}; starting it again`);
    await new Promise((resolve) => setTimeout(resolve, pause));
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
  if (children.length > 0) {
    terminal.say('\nStopping (requests in flight are finished first; Ctrl-C again ends it at once) ...');
  }
  const [postgres] = children.filter(({ name }) => name === POSTGRES);
  await Promise.all(children.filter((child) => child !== postgres).map((child) => child.stop()));
  // The others need it to the last.
  await postgres?.stop();
  // A gateway or worker that had to be killed leaves its handlers and compilers.
  killLeftovers();
  await unlock();
  terminal.say('Stopped.');
  process.exit(exitCode);
}

/** What confines handlers and compilers, in words. */
async function sandboxInForce(api: ApiClient): Promise<string> {
  const { sandbox } = (await api.call('GET', '/api/health')) as { sandbox: Record<string, string | null> };
  return Object.values(sandbox).every((level) => level === 'bubblewrap')
    ? 'bubblewrap'
    : 'none, only resource limits: code of handlers can read what you can; docs/SANDBOX.md says what to do';
}

function showUrls(config: Config, path: string | undefined, sandbox: string): void {
  const host = urlHost(config.HOST);
  const api = `http://${host}:${config.PORT}`;
  const gateway = `http://${host}:${config.GATEWAY_PORT}`;
  terminal.say(`
Edge Gateway is up.

  Gateway         ${gateway}
  Management API  ${api}/api
  API description ${api}/api/openapi.json
  Queues          ${api}/queues
  Metrics         ${api}/metrics
  Data            ${config.DATA_DIR}
  Sandbox         ${sandbox}
${path === undefined ? '' : `\n  Try it:  curl ${gateway}${path}\n`}
  Ctrl-C stops everything; the next \`npm run up\` finds it all again.
${isOpenToOthers(config) ? `\n${OPEN_WARNING}\n` : ''}`);
}

function isOpenToOthers({ HOST, API_KEY }: Config): boolean {
  return API_KEY === undefined && !/^(localhost|127\.\d+\.\d+\.\d+|::1)$/.test(HOST);
}

/** An address that a client on this machine can use. */
function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost';
  return host.includes(':') ? `[${host}]` : host;
}

function showHelp(): void {
  const settings = Object.entries(SETTINGS).map(
    ([name, { shown, description }]) =>
      `  ${name} (default: ${shown.replaceAll('`', '')})\n      ${description.replaceAll('`', '')}`,
  );
  terminal.say(`npm run up: starts Edge Gateway on this machine.

Installs the packages if they are missing, builds, starts PostgreSQL (unless DATABASE_URL names one), migrates, starts
the processes web, worker, gateway and actor-host, and deploys a sample endpoint into an empty database.

Settings are environment variables:

${settings.join('\n')}
`);
}
