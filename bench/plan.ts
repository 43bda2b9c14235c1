/** How long does a plan of 1,000 endpoints take that are as the folder says? */
import { expectData } from '../test/support/expect.js';
import { askForPlan, type Files, type ShownPlan } from '../test/support/plans.js';
import { must } from '../test/support/processes.js';
import { withStacks } from './support/gateway.js';
import { type Benchmark, runAlone } from './support/main.js';
import { median, round } from './support/report.js';

const ENDPOINTS = 1_000;
const ROUNDS = 7;
const AT_A_TIME = 8;
/** Of each handler, bytes. */
const CODE_BYTES = 4_096;

export const plan: Benchmark = () =>
  withStacks([{}], async (stack) => {
    if (!stack) throw new Error('no stack');
    const { api } = stack;
    const host = 'plan.test';
    await must(api.post('/api/domains', { name: host, host }));
    const code = `${'// a line of code\n'.repeat(CODE_BYTES / 18)}fn main() {}\n`;
    let number = 0;
    const lane = async () => {
      while (number < ENDPOINTS) {
        const path = `/e${number++}/{id}`;
        const limits = { timeout_ms: 1_000 };
        await must(
          api.post('/api/endpoints', { name: path, path, method: 'GET', domain: host, code, limits }),
        );
      }
    };
    await Promise.all(Array.from({ length: AT_A_TIME }, lane));
    const { files } = expectData<{ files: Files }>(await api.get('/api/export'));
    const times: number[] = [];
    for (let at = 0; at <= ROUNDS; at++) {
      const started = performance.now();
      const { changes } = expectData<ShownPlan>(await askForPlan(api, files));
      if (changes.length > 0) throw new Error(`${changes.length} changes of an export`);
      if (at > 0) times.push(performance.now() - started);
    }
    const value = median(times) / 1_000;
    return [
      {
        question: `a plan of ${ENDPOINTS} endpoints that are as the folder says`,
        measured: `${round(median(times))} ms`,
        value,
        unit: 's',
        bar: { atMost: 1 },
      },
    ];
  });

await runAlone(import.meta.url, plan);
