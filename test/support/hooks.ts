/**
 * Root hooks of mocha: start and stop of the shared database server, and the check for leaked processes and resources.
 * In parallel mode each worker checks itself, and only the main process has the server.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { takeUnexpectedErrors } from './log.js';
import { shareServer, stopServer } from './postgres.js';
import { descendantsOf } from './process-state.js';
import { leftTempDirs } from './temp.js';

/** Time for resources that close asynchronously, such as sockets; none of it passes when they have. */
const GRACE_MS = 30_000;

/** Resources at one moment that a suite has to release. */
interface Belongings {
  /** Direct children of this process, as `pid command`. */
  readonly children: readonly string[];
  readonly servers: number;
  readonly sockets: number;
  readonly folders: readonly string[];
}

const NOTHING: Belongings = { children: [], servers: 0, sockets: 0, folders: [] };
/**
 * Resources that are not leaks of the current suite: process and folder of the database server, and leaks of earlier
 * suites.
 */
let known = NOTHING;

export async function mochaGlobalSetup(): Promise<void> {
  await shareServer();
  const { children, folders } = belongings();
  known = { ...NOTHING, children, folders };
}

export async function mochaGlobalTeardown(): Promise<void> {
  await stopServer();
  await checkLeft(NOTHING);
}

export const mochaHooks: Mocha.RootHookObject = {
  beforeAll(this: Mocha.Context) {
    // Hooks of a suite run in the order they were added, so this one runs after the suite's own hooks.
    for (const suite of this.test?.parent?.suites ?? []) suite.afterAll(() => checkSuite());
  },
};

async function checkSuite(): Promise<void> {
  const errors = takeUnexpectedErrors();
  await checkLeft(known);
  if (errors.length > 0) throw new Error(`Errors were logged that no test expected:\n${errors.join('\n')}`);
}

/**
 * @throws Error when there are more than allowed, even after a while. Processes among them are killed: they would keep
 * mocha from exiting, and disturb later suites.
 */
async function checkLeft(allowed: Belongings): Promise<void> {
  const deadline = Date.now() + GRACE_MS;
  for (;;) {
    const now = belongings();
    const left = describeLeft(now, allowed);
    if (left.length === 0) return;
    if (Date.now() > deadline) {
      // Not counted as leaks of later suites.
      known = now;
      killAll(now.children.filter((child) => !allowed.children.includes(child)));
      throw new Error(`Left behind: ${left.join('; ')}`);
    }
    await delay(50);
  }
}

function describeLeft(now: Belongings, allowed: Belongings): string[] {
  return [
    ...now.children.filter((child) => !allowed.children.includes(child)).map((child) => `process ${child}`),
    ...now.folders.filter((folder) => !allowed.folders.includes(folder)).map((folder) => `folder ${folder}`),
    ...(now.servers > allowed.servers ? [`${now.servers} listening sockets`] : []),
    ...(now.sockets > allowed.sockets ? [`${now.sockets} open connections`] : []),
  ];
}

function belongings(): Belongings {
  const resources = process.getActiveResourcesInfo();
  return {
    children: childProcesses(),
    servers: resources.filter((name) => name === 'TCPServerWrap' || name === 'PipeServerWrap').length,
    sockets: resources.filter((name) => name === 'TCPSocketWrap').length,
    folders: leftTempDirs(),
  };
}

/** Kills children of this process, and theirs. */
function killAll(children: readonly string[]): void {
  for (const child of children.map((text) => Number.parseInt(text, 10))) {
    for (const pid of [child, ...descendantsOf(child).map((found) => found.pid)]) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It has just exited.
      }
    }
  }
}

function childProcesses(): string[] {
  const children: string[] = [];
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      // pid (command) state parent ...; the command may hold spaces and parentheses.
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
      const end = stat.lastIndexOf(')');
      const [state, parent] = stat.slice(end + 2).split(' ');
      if (Number(parent) === process.pid && state !== 'Z') {
        children.push(`${pid} ${stat.slice(stat.indexOf('(') + 1, end)}`);
      }
    } catch {
      // It has ended meanwhile.
    }
  }
  return children;
}
