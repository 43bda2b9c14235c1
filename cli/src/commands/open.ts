/** `edge open`: the web UI, in a browser. */
import { spawn } from 'node:child_process';
import { idOf } from '../names.js';
import type { CommonOptions, Session } from '../session.js';

/** The program that opens an address, by platform. */
const OPENERS: Readonly<Record<string, string>> = { darwin: 'open', linux: 'xdg-open' };

export async function open(session: Session, _options: CommonOptions, name?: string): Promise<void> {
  const path = name === undefined ? '/ui' : `/ui/endpoints/${await idOf(session, 'endpoint', name)}`;
  const url = `${session.access.url}${path}`;
  session.out.result({ url }, () => session.out.line(url));
  // Programs get the address; people also the page.
  if (process.stdout.isTTY) await openInBrowser(url);
}

/** Where there is no browser, the printed address has to do. */
async function openInBrowser(url: string): Promise<void> {
  const opener = OPENERS[process.platform];
  if (opener === undefined) return;
  await new Promise<void>((resolve) => {
    const child = spawn(opener, [url], { detached: true, stdio: 'ignore' });
    child.once('error', () => resolve());
    child.once('spawn', () => {
      child.unref();
      resolve();
    });
  });
}
