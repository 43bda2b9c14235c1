/** A gateway of one's own for `edge dev`: `npm run up` of the checkout that this program is in. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { CHECKOUT } from './assets.js';
import { localPort } from './environment.js';
import { CliError, InterruptError } from './errors.js';
import type { Session } from './session.js';
import { safeLine } from './text.js';

const LOOK_EVERY_MS = 300;
/** Characters that are kept of what it printed last, for an error. */
const LAST_CHARACTERS = 4_096;

/** A gateway that ends with this program. */
export interface LocalGateway {
  readonly url: string;
  /** Ends it; resolves when it has ended. Its data stay. */
  stop(): Promise<void>;
}

/**
 * Starts a gateway on this machine, and waits until its API answers.
 * @returns undefined where this program is in no checkout
 * @throws CliError with what it has printed last, when it cannot start
 */
export async function startLocalGateway(session: Session): Promise<LocalGateway | undefined> {
  if (CHECKOUT === undefined) return undefined;
  const url = `http://127.0.0.1:${localPort()}`;
  session.out.note(`No gateway is configured; starting one of this checkout at ${url}.`);
  // The gateway has a group of its own: Ctrl-C is for this program, which ends it.
  const child = spawn(process.execPath, [join(CHECKOUT, 'scripts/up.mjs')], {
    cwd: CHECKOUT,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = once(child, 'exit');
  let last = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      last = `${last}${text}`.slice(-LAST_CHARACTERS);
      const line = text.trim().split('\n').at(-1);
      if (line) session.out.progress(safeLine(line));
    });
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM');
    await ended;
  };
  try {
    await answers(session, url, child);
  } catch (thrown) {
    await stop();
    if (session.signal.aborted) throw new InterruptError();
    const reason = last.trim() === '' ? String(thrown) : last.trim();
    throw new CliError(`The gateway could not be started:\n${reason}`, { code: 'no_local_gateway' });
  }
  return { url, stop };
}

async function answers({ signal }: Session, url: string, child: ChildProcess): Promise<void> {
  for (;;) {
    if (child.exitCode !== null || child.signalCode !== null) throw new Error('it has ended');
    const response = await fetch(`${url}/api/health`, { signal }).catch(() => undefined); // not yet
    if (response?.ok) return;
    await delay(LOOK_EVERY_MS, undefined, { signal });
  }
}
