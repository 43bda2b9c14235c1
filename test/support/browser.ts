/** A real browser without a window, and a page of this process in it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tempDir } from './temp.js';

const LONGEST_MS = 60_000;

export interface Page {
  readonly origin: string;
  /**
   * Runs a script on the page, in a new browser, for which all hosts of `.example` are this machine.
   * @param script the body of an async function of JavaScript, which returns what can be JSON
   * @throws Error when it throws, or says nothing for a minute
   */
  run(script: string): Promise<unknown>;
  close(): Promise<void>;
}

/** What a script has come to. */
interface Said {
  readonly value?: unknown;
  readonly error?: string;
}

/** @param host of the page; scripts reach other hosts of `.example` as pages of the web do */
export async function servePage(host: string): Promise<Page> {
  let script = '';
  let onSaid: (said: Said) => void = () => undefined;
  const server = createServer((request, response) => {
    if (request.method === 'POST') void read(request).then((said) => onSaid(said), onUnread);
    response.writeHead(200, { 'content-type': 'text/html' });
    response.end(request.url === '/' ? pageOf(script) : '');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const origin = `http://${host}:${(server.address() as AddressInfo).port}`;
  return {
    origin,
    run: async (next) => {
      script = next;
      const said = new Promise<Said>((resolve) => {
        onSaid = resolve;
      });
      const { value, error } = await whileBrowsing(`${origin}/`, said);
      if (error !== undefined) throw new Error(`The script failed: ${error}`);
      return value;
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Nobody waits for what a browser that was killed has said in part. */
function onUnread(): void {}

async function read(request: IncomingMessage): Promise<Said> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  return JSON.parse(Buffer.concat(chunks).toString()) as Said;
}

/** Opens a URL until something has happened. */
async function whileBrowsing<T>(url: string, happened: Promise<T>): Promise<T> {
  const folder = await tempDir('browser');
  const browser = spawn(
    'chromium-headless-shell',
    [
      // It cannot have its own sandbox as root.
      '--no-sandbox',
      '--disable-gpu',
      '--disable-dev-shm-usage',
      `--user-data-dir=${folder.path}`,
      '--host-resolver-rules=MAP *.example 127.0.0.1',
      '--remote-debugging-port=0',
      url,
    ],
    { stdio: ['ignore', 'ignore', 'pipe'], detached: true },
  );
  const complaints: Buffer[] = [];
  browser.stderr.on('data', (chunk: Buffer) => complaints.push(chunk));
  const ended = once(browser, 'close');
  const failed = ended.then(() => {
    throw new Error(`The browser ended: ${Buffer.concat(complaints)}`);
  });
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error('The page says nothing')), LONGEST_MS);
  });
  try {
    return await Promise.race([happened, failed, late]);
  } finally {
    clearTimeout(timer);
    failed.catch(() => undefined);
    // All its processes.
    if (browser.pid !== undefined && browser.exitCode === null) process.kill(-browser.pid, 'SIGKILL');
    await ended.catch(() => undefined);
    await folder.remove();
  }
}

function pageOf(script: string): string {
  return `<!doctype html><script type="module">
    const say = (said) => fetch('/said', { method: 'POST', body: JSON.stringify(said) });
    try { await say({ value: await (async () => { ${script} })() }); }
    catch (error) { await say({ error: String(error) }); }
  </script>`;
}
