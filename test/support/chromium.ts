/** Chromium without a window, from Debian. */
import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { tempDir } from './temp.js';

const LONGEST_MS = 60_000;

export interface Pages {
  /** The origin of all pages. */
  readonly origin: string;
  /** Runs a script in a page of this origin; resolves with the text that it calls `tell` with. */
  run(script: string): Promise<string>;
  close(): Promise<void>;
}

/** Serves pages; each has the cookie `session=ada`. */
export async function servePages(): Promise<Pages> {
  let script = '';
  let tell: (text: string) => void = () => undefined;
  const server = createServer((request, response) => {
    if (request.method === 'POST') {
      let text = '';
      request.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      request.on('end', () => {
        response.end();
        tell(text);
      });
      return;
    }
    response.writeHead(200, { 'Content-Type': 'text/html', 'Set-Cookie': 'session=ada; Path=/' });
    response.end(
      `<script>const tell = (text) => fetch('/told', { method: 'POST', body: text });\n${script}</script>`,
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    origin,
    run: async (text) => {
      script = text;
      const told = new Promise<string>((resolve) => {
        tell = resolve;
      });
      return openUntil(`${origin}/`, told);
    },
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/**
 * Opens an address in a new browser, which is ended when `done` is.
 * @throws Error when it ends by itself, or takes long
 */
export async function openUntil<T>(address: string, done: Promise<T>): Promise<T> {
  const profile = await tempDir('chromium');
  const browser = spawn(
    'chromium-headless-shell',
    [
      ...['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run'],
      ...['--disable-background-networking', `--user-data-dir=${profile.path}`, address],
    ],
    { stdio: 'ignore', detached: true },
  );
  const ended = new Promise((resolve) => browser.once('close', resolve));
  try {
    const gone = ended.then(() => Promise.reject(new Error('The browser has ended')));
    gone.catch(() => undefined);
    const late = setTimeout(LONGEST_MS, undefined, { ref: false }).then(() =>
      Promise.reject(new Error('The page tells nothing')),
    );
    late.catch(() => undefined);
    return await Promise.race([done, gone, late]);
  } finally {
    // With the processes of its pages.
    if (browser.pid !== undefined && browser.exitCode === null) process.kill(-browser.pid, 'SIGKILL');
    await ended;
    await profile.remove();
  }
}
