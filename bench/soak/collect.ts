/**
 * Collects the garbage of a process of Node, by its inspector, and prints how many bytes its objects still hold.
 * `node --experimental-websocket collect.js PID`: Node 20 has WebSockets with this option alone.
 */
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';

const INSPECTOR = 'http://127.0.0.1:9229/json';
const TRIES = 100;
const PAUSE_MS = 50;
/** Ends the inspector when this client has left: all processes use the same port. */
const END_SOON = 'setTimeout(() => process._debugEnd(), 10).unref()';

const pid = Number(process.argv[2]);
// Not in the types of Node: starts the inspector of another process.
(process as unknown as { _debugProcess(pid: number): void })._debugProcess(pid);
const socket = new WebSocket(await addressOf());
await once(socket, 'open');
let last = 0;
if ((await evaluated('process.pid')) !== pid)
  throw new Error(`Another process than ${pid} has the port of the inspector`);
// The first may only find what the second frees, such as buffers of objects.
await asked('HeapProfiler.collectGarbage', {});
await asked('HeapProfiler.collectGarbage', {});
const held = await evaluated('process.memoryUsage().heapUsed + process.memoryUsage().external');
await evaluated(END_SOON);
socket.close();
await isGone();
process.stdout.write(`${held}\n`);

async function addressOf(): Promise<string> {
  for (let tries = 0; tries < TRIES; tries++) {
    const found = await fetch(INSPECTOR).catch(() => undefined); // it has not started yet
    const [target] = found ? ((await found.json()) as { webSocketDebuggerUrl: string }[]) : [];
    if (target) return target.webSocketDebuggerUrl;
    await delay(PAUSE_MS);
  }
  throw new Error(`The inspector of process ${pid} has not started`);
}

async function isGone(): Promise<void> {
  for (let tries = 0; tries < TRIES; tries++) {
    if (!(await fetch(INSPECTOR).catch(() => undefined))) return;
    await delay(PAUSE_MS);
  }
  throw new Error(`The inspector of process ${pid} does not end`);
}

async function evaluated(expression: string): Promise<unknown> {
  const { result } = (await asked('Runtime.evaluate', { expression })) as { result: { value?: unknown } };
  return result.value;
}

async function asked(method: string, params: object): Promise<unknown> {
  const id = ++last;
  const answered = new Promise<unknown>((resolve) => {
    const onMessage = ({ data }: MessageEvent) => {
      const message = JSON.parse(String(data)) as { id?: number; result?: unknown };
      if (message.id !== id) return;
      socket.removeEventListener('message', onMessage);
      resolve(message.result);
    };
    socket.addEventListener('message', onMessage);
  });
  socket.send(JSON.stringify({ id, method, params }));
  return answered;
}
