/**
 * A thread that asks processes for something small again and again: how long does it wait for an answer? It has an
 * event loop of its own, so that what the benchmark does besides does not count.
 */
import { Agent, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { parentPort, Worker, workerData } from 'node:worker_threads';

/** Between two requests, milliseconds. */
const PAUSE_MS = 2;

/** What is asked for: the address, or the path of a Unix socket that answers at `/`. */
export type Asked = { readonly url: string } | { readonly socketPath: string };

/** Watches while work is done. @returns the longest wait of each, milliseconds */
export async function longestWaits(asked: readonly Asked[], work: () => Promise<unknown>): Promise<number[]> {
  const worker = new Worker(new URL(import.meta.url), { workerData: { asked } });
  try {
    await new Promise((resolve) => worker.once('message', resolve));
    await work();
    const longest = new Promise<number[]>((resolve, reject) => {
      worker.once('message', resolve);
      worker.once('error', reject);
    });
    worker.postMessage('end');
    return await longest;
  } finally {
    await worker.terminate();
  }
}

const { asked: watched } = (workerData ?? {}) as { readonly asked?: readonly Asked[] };
if (parentPort && watched) await watchAll(watched);

async function watchAll(all: readonly Asked[]): Promise<void> {
  let isEnded = false;
  parentPort?.once('message', () => {
    isEnded = true;
  });
  // Not measured: the first requests open the connections.
  const watches = await Promise.all(all.map((asked) => connect(asked)));
  parentPort?.postMessage('watching');
  parentPort?.postMessage(await Promise.all(watches.map((watch) => watch(() => isEnded))));
}

/** @returns what asks until it is over, and resolves with the longest wait */
async function connect(asked: Asked): Promise<(isEnded: () => boolean) => Promise<number>> {
  const agent = new Agent({ keepAlive: true });
  await ask(asked, agent);
  return async (isEnded) => {
    let longest = 0;
    while (!isEnded()) {
      const began = performance.now();
      await ask(asked, agent);
      longest = Math.max(longest, performance.now() - began);
      await delay(PAUSE_MS);
    }
    agent.destroy();
    return longest;
  };
}

function ask(asked: Asked, agent: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    const outgoing = 'url' in asked ? request(asked.url, { agent }) : request({ ...asked, path: '/', agent });
    outgoing.once('response', (response) => response.resume().once('end', resolve).once('error', reject));
    outgoing.once('error', reject).end();
  });
}
