/** Chromium without a window, from Debian: installed when it is missing, because it is large. */
import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { execa } from 'execa';
import { tempDir } from './temp.js';

const INSTALL = ['apt-get', 'install', '-y', '--no-install-recommends', 'chromium'] as const;

/** @throws Error that tells what to install */
export async function ensureChromium(): Promise<void> {
  const isThere = async () => (await execa('chromium', ['--version'], { reject: false })).exitCode === 0;
  if (await isThere()) return;
  const [program, ...args] = INSTALL;
  await execa(program, args, { reject: false });
  if (!(await isThere())) throw new Error(`Chromium is needed: ${INSTALL.join(' ')}`);
}

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
      const profile = await tempDir('chromium');
      const browser = spawn(
        'chromium',
        [
          ...['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run'],
          ...['--disable-background-networking', `--user-data-dir=${profile.path}`, `${origin}/`],
        ],
        { stdio: 'ignore', detached: true },
      );
      const ended = new Promise((resolve) => browser.once('close', resolve));
      try {
        return await told;
      } finally {
        // With the processes of its pages.
        if (browser.pid !== undefined) process.kill(-browser.pid, 'SIGKILL');
        await ended;
        await profile.remove();
      }
    },
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
