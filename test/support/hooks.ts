/** What mocha runs around all suites: the end of the shared database server, and the look for what tests left behind. */
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { takeUnexpectedErrors } from './log.js';
import { stopServer } from './postgres.js';
import { leftTempDirs } from './temp.js';

/** What ends by itself, like a socket that is closing, gets this long. */
const GRACE_MS = 3_000;

/** What there is at one moment that a suite has to clear away. */
interface Belongings {
  readonly children: readonly string[];
  readonly servers: number;
  readonly sockets: number;
  readonly folders: readonly string[];
}

export const mochaHooks: Mocha.RootHookObject = {
  beforeAll(this: Mocha.Context) {
    // Hooks of a suite run in the order they were added, so this one sees what the suite's own hooks have left.
    for (const suite of this.test?.parent?.suites ?? []) suite.afterAll(() => checkSuite());
  },

  async afterAll() {
    await stopServer();
    await checkLeft({ children: [], servers: 0, sockets: 0, folders: [] });
  },
};

async function checkSuite(): Promise<void> {
  const errors = takeUnexpectedErrors();
  // The database server belongs to the run: its process, and its folder.
  const isServer = (text: string) => /postgres/.test(text);
  const { children, folders } = belongings();
  await checkLeft({
    children: children.filter(isServer),
    servers: 0,
    sockets: 0,
    folders: folders.filter(isServer),
  });
  if (errors.length > 0) throw new Error(`Errors were logged that no test expected:\n${errors.join('\n')}`);
}

/** @throws Error when more is there than allowed, even after a while */
async function checkLeft(allowed: Belongings): Promise<void> {
  const deadline = Date.now() + GRACE_MS;
  for (;;) {
    const left = describeLeft(belongings(), allowed);
    if (left.length === 0) return;
    if (Date.now() > deadline) throw new Error(`Left behind: ${left.join('; ')}`);
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

/** The direct children of this process, as `pid command`. */
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
      // It ended while we looked.
    }
  }
  return children;
}
