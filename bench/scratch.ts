import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { withStacks } from './support/gateway.js';
import { SMALL_JSON } from './support/handlers.js';
import { frontPid, residentMegabytes } from './support/process-figures.js';
import { makeRunning } from './support/sleeping-endpoints.js';

const env = { GATEWAY_CONCURRENCY: '2', LOG_LEVEL: 'warn' };
await withStacks([{ env }], async (many) => {
  if (!many) throw new Error('x');
  const id = await many.deploy({ path: '/awake/{id}', code: SMALL_JSON, limits: { min_instances: 1 } });
  for (const n of [0, 10_000]) {
    if (n) await makeRunning(many, n, id);
    await many.processes.get('gateway')?.end();
    await many.start('gateway');
    await delay(20_000);
    const pid = many.processes.get('gateway')?.pid ?? 0;
    console.log(
      n,
      'supervisor',
      await residentMegabytes(pid),
      'front',
      await residentMegabytes(await frontPid(pid)),
    );
    console.log((await readFile(`/proc/${pid}/smaps_rollup`, 'utf8')).split('\n').slice(1, 12).join(' | '));
  }
});
