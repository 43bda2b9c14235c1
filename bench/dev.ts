/** How quickly is a save in the folder of `edge dev` live, and what does starting the command line cost? */
import { execFileSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { EDGE, edge, startEdge } from '../test/support/edge.js';
import { tempDir } from '../test/support/temp.js';
import { withStacks } from './support/gateway.js';
import { uniqueVariant } from './support/handlers.js';
import { type Benchmark, runAlone } from './support/main.js';
import { median, timed } from './support/report.js';

const SAVES = 20;
const STARTS = 20;

/** A small handler that answers with this text. */
const handler = (text: string) => `use rust_edge_gateway_sdk::prelude::*;

fn handle(_req: Request) -> Response {
    Response::text(200, "${text}")
}

handler_loop!(handle);
`;

export const dev: Benchmark = () =>
  withStacks([{}], async (stack) => {
    if (!stack) throw new Error('no stack');
    const folder = await tempDir('dev');
    const cwd = join(folder.path, 'shop');
    const env = { XDG_CONFIG_HOME: folder.path, EDGE_URL: stack.apiUrl, USER: 'bench' };
    await edge(['init', 'shop'], { cwd: folder.path, env });
    const source = join(cwd, 'src/hello.rs');
    const running = startEdge(['dev'], { cwd, env });
    try {
      await running.says('live');
      const isLive = async (text: string) => {
        const headers = { host: 'bench-dev.localhost' };
        const { body } = await stack.gateway.get('/hello/Ada', { headers });
        return body === text;
      };
      const saves: number[] = [];
      for (let save = 0; save < SAVES; save++) {
        const text = uniqueVariant();
        await writeFile(source, handler(text));
        saves.push(
          await timed(async () => {
            while (!(await isLive(text))) await delay(2);
          }),
        );
      }
      return [
        {
          question: '`edge dev`: a save until its answer is live',
          measured: `median of ${SAVES}`,
          value: median(saves),
          unit: 'ms',
          bar: { atMost: 1_000 },
        },
        startCost(),
      ];
    } finally {
      await running.end();
      await folder.remove();
    }
  });

/** What `edge --version` takes more than Node itself. */
function startCost() {
  const run = (...args: string[]) => {
    const began = performance.now();
    execFileSync(process.execPath, args, { stdio: 'ignore' });
    return performance.now() - began;
  };
  const [own, empty]: [number[], number[]] = [[], []];
  for (let start = 0; start < STARTS; start++) {
    own.push(run(EDGE, '--version'));
    empty.push(run('-e', '0'));
  }
  return {
    question: '`edge --version`, more than `node -e 0`',
    measured: `medians of ${STARTS}`,
    value: median(own) - median(empty),
    unit: 'ms',
    bar: { atMost: 100 },
  };
}

await runAlone(import.meta.url, dev);
