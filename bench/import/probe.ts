/** Watches from outside how long a URL keeps others waiting. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** What requests had to wait, in milliseconds. */
export interface Waits {
  readonly longest: number;
  readonly median: number;
}

/** A probe at work. */
export interface Probe {
  /** The waits since this was called last. */
  take(): Promise<Waits>;
  stop(): Promise<void>;
}

/** Starts to ask for the URL; resolves when the first answer is there. */
export async function startProbe(url: string): Promise<Probe> {
  const child = fork(fileURLToPath(new URL('./health-probe.js', import.meta.url)), [url]);
  const take = () => {
    const waits = nextMessage(child);
    child.send('take');
    return waits;
  };
  const stop = async () => {
    if (child.exitCode !== null) return;
    const exit = once(child, 'exit');
    child.disconnect();
    await exit;
  };
  await take();
  return { take, stop };
}

function nextMessage(child: ChildProcess): Promise<Waits> {
  return new Promise((resolve, reject) => {
    const onExit = (code: number | null) => reject(new Error(`The probe ended with ${code}`));
    child.once('exit', onExit);
    child.once('message', (waits) => {
      child.off('exit', onExit);
      resolve(waits as Waits);
    });
  });
}
