/** How long does the API take to compile a small handler, new or known, compared with rustc and cargo themselves? */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { must, type Stack } from '../test/support/processes.js';
import { tempDir } from '../test/support/temp.js';
import { withStacks } from './support/gateway.js';
import { jsonHandler, uniqueVariant } from './support/handlers.js';
import { type Benchmark, runAlone } from './support/main.js';
import { median, round, timed } from './support/report.js';

const ROUNDS = 15;
const SDK = fileURLToPath(new URL('../../rust/sdk', import.meta.url));
/** The optimisation level handlers are built with. */
const OPT_LEVEL = 's';

export const compile: Benchmark = () =>
  withStacks([{ processes: ['web', 'worker'] }], async (stack) => {
    if (!stack) throw new Error('no stack');
    const folder = await tempDir('compile');
    try {
      const rustc = await emptyMain(folder.path);
      const cargo = await cargoProject(folder.path);
      const id = await createEndpoint(stack);
      const samples: { rustc: number; cargo: number; fresh: number; known: number }[] = [];
      // The first round warms everything up and is not counted.
      for (let round = 0; round <= ROUNDS; round++) {
        const sample = {
          rustc: await timed(rustc),
          cargo: await cargo(jsonHandler(uniqueVariant())),
          fresh: await compileThroughApi(stack, id, jsonHandler(uniqueVariant())),
          known: await timed(() => must(stack.api.post(`/api/endpoints/${id}/compile`))),
        };
        if (round > 0) samples.push(sample);
      }
      const of = (key: keyof (typeof samples)[number]) => median(samples.map((sample) => sample[key]));
      const ratio = (over: keyof (typeof samples)[number], under: keyof (typeof samples)[number]) =>
        median(samples.map((sample) => sample[over] / sample[under]));
      return [
        {
          question: 'API compile of a new small JSON handler, warm, against bare `rustc` of an empty `main`',
          measured: `${round(of('fresh'))} ms against ${round(of('rustc'))} ms`,
          value: ratio('fresh', 'rustc'),
          unit: 'x',
          bar: { atMost: 2.5 },
        },
        {
          question: 'the same against a warm `cargo build --release` of the same source',
          measured: `${round(of('fresh'))} ms against ${round(of('cargo'))} ms`,
          value: ratio('fresh', 'cargo'),
          unit: 'x',
          bar: { atMost: 0.7 },
        },
        {
          question: 'API compile of a source compiled before, against a new one',
          measured: `${round(of('known'))} ms against ${round(of('fresh'))} ms`,
          value: ratio('known', 'fresh'),
          unit: 'x',
          bar: { atMost: 0.1 },
        },
      ];
    } finally {
      await folder.remove();
    }
  });

/** An endpoint for a handler that is compiled. @returns its id */
export async function createEndpoint({ api }: Stack): Promise<string> {
  const endpoint = { name: 'bench', path: '/bench', method: 'POST', domain: '*', code: jsonHandler('0') };
  return ((await must(api.post('/api/endpoints', endpoint))) as { id: string }).id;
}

/** @returns milliseconds from the request to the executable */
export async function compileThroughApi({ api }: Stack, id: string, code: string): Promise<number> {
  await must(api.put(`/api/endpoints/${id}`, { code }));
  return timed(() => must(api.post(`/api/endpoints/${id}/compile`)));
}

/** The floor: what rustc takes for nothing at all. */
async function emptyMain(folder: string): Promise<() => Promise<unknown>> {
  const sysroot = (await execa('rustc', ['--print', 'sysroot'])).stdout.trim();
  await writeFile(join(folder, 'empty.rs'), 'fn main() {}\n');
  const args = ['--edition=2021', `-Copt-level=${OPT_LEVEL}`, '-o', 'empty', 'empty.rs'];
  return () => execa(join(sysroot, 'bin', 'rustc'), args, { cwd: folder });
}

/** A cargo project with the SDK, its dependencies built: only the handler itself is compiled. */
async function cargoProject(folder: string): Promise<(code: string) => Promise<number>> {
  const project = join(folder, 'project');
  await mkdir(join(project, 'src'), { recursive: true });
  await writeFile(
    join(project, 'Cargo.toml'),
    `[package]\nname = "handler"\nversion = "0.1.0"\nedition = "2021"\n\n[workspace]\n\n[dependencies]\n` +
      `rust-edge-gateway-sdk = { path = ${JSON.stringify(SDK)} }\nserde = { version = "1", features = ["derive"] }\nserde_json = "1"\n`,
  );
  return async (code) => {
    await writeFile(join(project, 'src', 'main.rs'), code);
    return timed(() => execa('cargo', ['build', '--release', '--quiet'], { cwd: project }));
  };
}

await runAlone(import.meta.url, compile);
