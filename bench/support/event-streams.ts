/** What do very many open streams of server-sent events cost, and does all that a handler sends arrive in time? */
import { readFile } from 'node:fs/promises';
import { openEventStreams } from '../../test/support/event-streams.js';
import type { Stack } from '../../test/support/processes.js';
import { TICKING_EVENTS } from '../../test/support/streaming-sources.js';
import { PROCESS_KINDS, processFigures } from '../soak/figures.js';
import { withStacks } from './gateway.js';
import { type Row, round } from './report.js';

const STREAMS = 10_000;
/** Of each stream, one a second: they are all open, and have been for a while, long before the first one ends. */
const EVENTS = 40;
/** Then the memory is measured. */
const SETTLED_EVENTS = 10;
const PAGE_BYTES = 4096;

/** Memory at one moment, bytes. */
interface Memory {
  /** Proportional set size by kind of process. */
  readonly byKind: ReturnType<typeof processFigures>;
  /** Of the kernel, for the whole machine: also the clients' ends of the connections. */
  readonly kernel: number;
}

/** @throws Error when any event is missing */
export function eventStreamsRow(): Promise<Row> {
  const env = { GATEWAY_CONCURRENCY: '2', HANDLER_CONCURRENT_REQUESTS: String(STREAMS + 100) };
  return withStacks([{ env }], async (stack) => {
    if (!stack) throw new Error('no stack');
    await stack.deploy({ path: '/events', code: TICKING_EVENTS });
    const url = (count: number) => `${stack.gatewayUrl}/events?count=${count}`;
    const first = openEventStreams(url(1), 1);
    await first.until(({ complete }) => complete === 1);
    await first.end();
    const before = await memoryOf(stack);
    const streams = openEventStreams(url(EVENTS), STREAMS);
    try {
      const isSettled = ({ open, fewest, broken }: { open: number; fewest: number; broken: number }) =>
        broken > 0 || (open === STREAMS && fewest >= SETTLED_EVENTS);
      const { open, delay } = await streams.until(isSettled);
      if (open !== STREAMS) throw new Error(`Not all streams were open: ${JSON.stringify(streams.counts())}`);
      const after = await memoryOf(stack);
      const ended = await streams.until(({ complete, broken }) => complete + broken === STREAMS);
      if (ended.complete !== STREAMS || ended.events !== STREAMS * EVENTS || ended.misplaced > 0)
        throw new Error(`Not all events were delivered: ${JSON.stringify(ended)}`);
      const kilobytes = (bytes: number) => bytes / 1000 / STREAMS;
      const grown = PROCESS_KINDS.map((kind) => ({
        kind,
        kilobytes: kilobytes(after.byKind[kind].pss - before.byKind[kind].pss),
      }));
      const shares = grown.filter((one) => Math.abs(one.kilobytes) >= 0.1);
      const kernel = kilobytes(after.kernel - before.kernel);
      return {
        question: `memory of all processes for an open stream of server-sent events, with ${STREAMS.toLocaleString('en')} of them, one event a second each`,
        measured: [
          shares.map((one) => `${one.kind} ${round(one.kilobytes)} kB`).join(', '),
          `all ${ended.events.toLocaleString('en')} events delivered`,
          `from the handler to the client p50 ${delay.p50} ms, p99 ${delay.p99} ms`,
          `besides, the kernel has ${round(kernel)} kB for both ends of a connection`,
        ].join('; '),
        value: grown.reduce((sum, one) => sum + one.kilobytes, 0),
        unit: 'kB',
        bar: { atMost: 30 },
      };
    } finally {
      await streams.end();
    }
  });
}

async function memoryOf(stack: Stack): Promise<Memory> {
  const [info, sockets] = [
    await readFile('/proc/meminfo', 'utf8'),
    await readFile('/proc/net/sockstat', 'utf8'),
  ];
  const slab = Number(/^Slab: +(\d+) kB$/m.exec(info)?.[1]) * 1024;
  const buffers = Number(/^TCP: .* mem (\d+)$/m.exec(sockets)?.[1]) * PAGE_BYTES;
  return { byKind: processFigures({ stack }), kernel: slab + buffers };
}
