/** How long does an apply of 1,000 endpoints take in which 10 have new code, beside compiling that? */

import type { HttpClient } from '../test/support/client.js';
import { expectData } from '../test/support/expect.js';
import { askForPlan, type Files, type ShownPlan } from '../test/support/plans.js';
import { must } from '../test/support/processes.js';
import { withStacks } from './support/gateway.js';
import { type Benchmark, runAlone } from './support/main.js';
import { median, round } from './support/report.js';

const ENDPOINTS = 1_000;
const CHANGED = 10;
const ROUNDS = 5;

const FOLDER = 'stack: bench\ndomains:\n  - host: apply.test\nendpoints:\n';

const handler = (text: string) => `use rust_edge_gateway_sdk::prelude::*;

fn handle(_req: Request) -> Response {
    Response::text(200, "${text}")
}

handler_loop!(handle);
`;

/** Endpoints with a handler each; those that change say which round it is. */
function folderOf(turn: number): Files {
  const numbers = Array.from({ length: ENDPOINTS }, (_, at) => at);
  const listed = numbers.map(
    (at) =>
      `  - {host: apply.test, method: GET, route: /e${at}, handler: ${at < CHANGED ? `e${at}` : 'same'}.rs}\n`,
  );
  const changed = numbers.slice(0, CHANGED).map((at) => [`e${at}.rs`, handler(`${at} of ${turn}`)] as const);
  return {
    'edge.yaml': FOLDER + listed.join(''),
    'same.rs': handler('same'),
    ...Object.fromEntries(changed),
  };
}

export const apply: Benchmark = () =>
  withStacks([{}], async (stack) => {
    if (!stack) throw new Error('no stack');
    const { api } = stack;
    /** @returns how many objects have changed, and how long it took after the plan */
    const applied = async (files: Files): Promise<{ changes: number; seconds: number }> => {
      const { changes, plan_hash } = expectData<ShownPlan>(await askForPlan(api, files));
      const started = performance.now();
      const ended = (await must(api.post(`/api/apply?plan_hash=${plan_hash}`, { files }))) as {
        state: string;
      };
      if (ended.state !== 'succeeded') throw new Error(`the apply is ${ended.state}`);
      return { changes: changes.length, seconds: (performance.now() - started) / 1_000 };
    };
    await applied(folderOf(0));
    const times: number[] = [];
    for (let turn = 1; turn <= ROUNDS; turn++) {
      // Compiled before: what remains is the apply.
      await compileElsewhere(api, folderOf(turn));
      const { changes, seconds } = await applied(folderOf(turn));
      if (changes !== CHANGED) throw new Error(`${changes} changes instead of ${CHANGED}`);
      times.push(seconds);
    }
    const value = median(times);
    return [
      {
        question: `an apply of ${ENDPOINTS} endpoints, ${CHANGED} of them with new code that is compiled already`,
        measured: `${round(value * 1_000)} ms, median of ${ROUNDS}`,
        value,
        unit: 's',
        bar: { atMost: 5 },
      },
    ];
  });

/** The same sources have the same executables, whichever endpoint they are of. */
async function compileElsewhere(api: HttpClient, files: Files): Promise<void> {
  for (const [path, code] of Object.entries(files)) {
    if (!/^e\d+\.rs$/.test(path)) continue;
    const created = (await must(
      api.post('/api/endpoints', { name: path, path: `/${path}`, method: 'GET', domain: 'other.test', code }),
    )) as { id: string };
    await must(api.post(`/api/endpoints/${created.id}/compile`));
    await must(api.delete(`/api/endpoints/${created.id}`));
  }
}

await runAlone(import.meta.url, apply);
