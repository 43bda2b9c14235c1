/** Do many builds at once use the cores well? 50 different handlers, against the CPU time their compilers need. */
import { availableParallelism } from 'node:os';
import { must } from '../test/support/processes.js';
import { withStacks } from './support/gateway.js';
import { jsonHandler, uniqueVariant } from './support/handlers.js';
import { type Benchmark, runAlone } from './support/main.js';
import { childSeconds } from './support/process-figures.js';
import { median, round, timed } from './support/report.js';

const HANDLERS = 50;
const ROUNDS = 3;

export const compileMany: Benchmark = () =>
  withStacks([{ processes: ['web', 'worker'] }], async (stack) => {
    const workerPid = stack?.processes.get('worker')?.pid;
    if (!stack || workerPid === undefined) throw new Error('no stack');
    const { api } = stack;
    const samples: { wall: number; cpu: number }[] = [];
    for (let round = 0; round <= ROUNDS; round++) {
      const ids = await Promise.all(
        Array.from({ length: HANDLERS }, async (_none, number) => {
          const path = `/bench/${round}/${number}`;
          const endpoint = {
            name: path,
            path,
            method: 'POST',
            domain: '*',
            code: jsonHandler(uniqueVariant()),
          };
          return ((await must(api.post('/api/endpoints', endpoint))) as { id: string }).id;
        }),
      );
      const before = await childSeconds(workerPid);
      const wall =
        (await timed(() => Promise.all(ids.map((id) => must(api.post(`/api/endpoints/${id}/compile`)))))) /
        1000;
      const cpu = (await childSeconds(workerPid)) - before;
      if (round > 0) samples.push({ wall, cpu });
    }
    const cores = availableParallelism();
    return [
      {
        question:
          '50 different handlers compiled through the API at once, wall time against their rustc CPU seconds / cores',
        measured: `${round(median(samples.map(({ wall }) => wall)))} s against ${round(median(samples.map(({ cpu }) => cpu)))} CPU s / ${cores}`,
        value: median(samples.map(({ wall, cpu }) => wall / (cpu / cores))),
        unit: 'x',
        bar: { atMost: 1.25 },
      },
    ];
  });

await runAlone(import.meta.url, compileMany);
