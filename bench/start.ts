/** How quickly does a compiled endpoint start, and how much memory does its idle process take? */
import { readFile } from 'node:fs/promises';
import { must } from '../test/support/processes.js';
import { withStacks } from './support/gateway.js';
import { SMALL_JSON } from './support/handlers.js';
import { type Benchmark, runAlone } from './support/main.js';
import { median, timed } from './support/report.js';

const ROUNDS = 30;

export const start: Benchmark = () =>
  withStacks([{ env: { LOG_LEVEL: 'info' } }], async (stack) => {
    if (!stack) throw new Error('no stack');
    const { api, gateway, deploy, processes } = stack;
    const id = await deploy({ path: '/hello/{name}', code: SMALL_JSON });
    const roundTrips: number[] = [];
    let pid = 0;
    for (let round = 0; round < ROUNDS; round++) {
      await must(api.post(`/api/endpoints/${id}/stop`));
      roundTrips.push(
        await timed(async () => {
          ({ pid } = (await must(api.post(`/api/endpoints/${id}/start`))) as { pid: number });
        }),
      );
    }
    // As measured by the gateway, from spawning the process until it listens.
    const spawns = (processes.get('gateway')?.logged.lines ?? [])
      .filter(({ msg }) => msg === 'handler ready')
      .map((line) => Number(line['ms']));
    const { status } = await gateway.get('/hello/ada');
    if (status !== 200) throw new Error(`the handler answers ${status}`);
    const rss = await residentMegabytes(pid);
    return [
      {
        question: '`start` round trip of a compiled endpoint',
        measured: `median of ${ROUNDS}`,
        value: median(roundTrips),
        unit: 'ms',
        bar: { atMost: 100 },
      },
      {
        question: 'process spawn to ready',
        measured: `median of ${spawns.length}`,
        value: median(spawns),
        unit: 'ms',
        bar: { atMost: 20 },
      },
      {
        question: 'idle handler process',
        measured: 'VmRSS after one request',
        value: rss,
        unit: 'MB',
        bar: { atMost: 3 },
      },
    ];
  });

async function residentMegabytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) / 1024;
}

await runAlone(import.meta.url, start);
