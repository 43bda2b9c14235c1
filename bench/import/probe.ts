/** Measures the response times of a URL from another process. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** Response times of requests, in milliseconds. */
export interface Waits {
  readonly longest: number;
  readonly median: number;
}

/** A running probe. */
export interface Probe {
  /** The response times since the last call. */
  take(): Promise<Waits>;
  stop(): Promise<void>;
}

/** Starts a probe of the URL; resolves after the first response. */
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
