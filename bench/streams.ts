/**
 * How soon has a client what a handler streams, and does the handler know that it has left? How fast is a large
 * download, against hyper by itself, and what do very many streams cost?
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import { execa } from 'execa';
import { hyperServer } from './support/baselines.js';
import { eventStreamsRow } from './support/event-streams.js';
import { withStacks } from './support/gateway.js';
import { STREAMED_DOWNLOAD, STREAMED_TIMES } from './support/handlers.js';
import { leavingClientsRow } from './support/leaving-clients.js';
import { type Benchmark, runAlone } from './support/main.js';
import { median, type Row, round } from './support/report.js';
import { measureInTurn, medianOf, ratioOf } from './support/rounds.js';

const TICKS = 300;
const ROUNDS = 5;
const MEGABYTES = 100;

export const streams: Benchmark = async () => [...(await piecesRows()), await eventStreamsRow()];

async function piecesRows(): Promise<Row[]> {
  const hyper = await hyperServer();
  try {
    return await withStacks([{ env: { GATEWAY_CONCURRENCY: '1' } }], async (stack) => {
      if (!stack) throw new Error('no stack');
      await stack.deploy({ path: '/times', code: STREAMED_TIMES });
      await stack.deploy({ path: '/download', code: STREAMED_DOWNLOAD });
      const delays = await delaysOf(stack.gatewayUrl, `/times?count=${TICKS}`);
      const sorted = [...delays].sort((left, right) => left - right);
      const p99 = sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN;
      const query = `bytes=${MEGABYTES * 1024 * 1024}`;
      const rounds = await measureInTurn(ROUNDS, {
        gateway: () => megabytesPerSecond(`${stack.gatewayUrl}/download?${query}`),
        hyper: () => megabytesPerSecond(`${hyper.url}/download?${query}`),
      });
      const rate = (of: 'gateway' | 'hyper') => `${round(medianOf(rounds, of, Number))} MB/s`;
      return [
        {
          question: 'a piece of a stream is with the client after the handler has written it',
          measured: `p50 of ${delays.length} pieces, one every 10 ms; p99 ${round(p99)} ms`,
          value: median(delays),
          unit: 'ms',
          bar: { atMost: 1 },
        },
        {
          question: `a streamed download of ${MEGABYTES} MB, against the same from hyper directly`,
          measured: `${rate('gateway')} against ${rate('hyper')}`,
          value: ratioOf(rounds, 'gateway', 'hyper', Number),
          unit: 'x',
          bar: { atLeast: 0.6 },
        },
        await leavingClientsRow(stack),
      ];
    });
  } finally {
    await hyper.stop();
  }
}

/** Between the times that a handler writes, microseconds since 1970 on a line, and those at which they arrive. */
async function delaysOf(url: string, target: string): Promise<number[]> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true }).setEncoding('latin1');
  const delays: number[] = [];
  socket.on('data', (text: string) => {
    const now = performance.timeOrigin + performance.now();
    for (const [time] of text.matchAll(/(?<=\n)\d{16}(?=\n)/g)) delays.push(now - Number(time) / 1e3);
  });
  socket.write(`GET ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
  await once(socket, 'close');
  if (delays.length !== TICKS) throw new Error(`${delays.length} pieces of ${TICKS}`);
  return delays;
}

async function megabytesPerSecond(url: string): Promise<number> {
  const { stdout } = await execa('curl', [
    ...['--silent', '--show-error', '--fail', '--output', '/dev/null'],
    ...['--write-out', '%{size_download} %{time_total}', url],
  ]);
  const [bytes = 0, seconds = 1] = stdout.split(' ').map(Number);
  if (bytes !== MEGABYTES * 1024 * 1024) throw new Error(`${bytes} bytes of ${url}`);
  return bytes / seconds / 1e6;
}

await runAlone(import.meta.url, streams);
