/**
 * A thread that asks for the health of the management API again and again: how long does it wait for an answer? It has
 * an event loop of its own, so that what the benchmark does besides does not count.
 */
import { Agent, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { parentPort, Worker, workerData } from 'node:worker_threads';

/** Between two requests, milliseconds. */
const PAUSE_MS = 2;

/** Watches while work is done. @returns the longest wait, milliseconds */
export async function longestWait(apiUrl: string, work: () => Promise<unknown>): Promise<number> {
  const worker = new Worker(new URL(import.meta.url), { workerData: { apiUrl } });
  try {
    await new Promise((resolve) => worker.once('message', resolve));
    await work();
    const longest = new Promise<number>((resolve, reject) => {
      worker.once('message', resolve);
      worker.once('error', reject);
    });
    worker.postMessage('end');
    return await longest;
  } finally {
    await worker.terminate();
  }
}

const watched = (workerData ?? {}) as { readonly apiUrl?: string };
if (parentPort && watched.apiUrl !== undefined) await watch(watched.apiUrl);

async function watch(apiUrl: string): Promise<void> {
  const agent = new Agent({ keepAlive: true });
  let isEnded = false;
  parentPort?.once('message', () => {
    isEnded = true;
  });
  // Not measured: the first one opens the connection.
  await ask(apiUrl, agent);
  parentPort?.postMessage('watching');
  let longest = 0;
  while (!isEnded) {
    const began = performance.now();
    await ask(apiUrl, agent);
    longest = Math.max(longest, performance.now() - began);
    await delay(PAUSE_MS);
  }
  agent.destroy();
  parentPort?.postMessage(longest);
}

function ask(apiUrl: string, agent: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    const outgoing = request(`${apiUrl}/api/health`, { agent }, (response) => {
      response.resume().once('end', resolve).once('error', reject);
    });
    outgoing.once('error', reject).end();
  });
}
