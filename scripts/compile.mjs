/** Compiles what dist/ has: the product, its tests, and the native programs. Must not import packages. */
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { buildNative } from './native.mjs';
import { fail, ROOT, run, step } from './prepare.mjs';

/**
 * Compiles the product.
 * @param ready what TypeScript waits for, such as packages
 * @param native groups of native programs; all unless they are named
 */
export async function build(ready = async () => undefined, native = undefined) {
  await Promise.all([ready().then(() => compile('tsconfig.product.json')), buildNative(native)]);
}

/** Compiles the product, its tests and benchmarks. */
export async function buildAll(ready = async () => undefined) {
  await Promise.all([ready().then(() => compile('tsconfig.json')), buildNative()]);
}

async function compile(project) {
  step('Building');
  removeStale(ROOT);
  const code = await run(process.execPath, [
    `${ROOT}node_modules/typescript/bin/tsc`,
    '-p',
    `${ROOT}${project}`,
  ]);
  if (code !== 0) fail('The build failed; the compiler printed the reason above.');
}

/** Removes output of deleted sources from dist/: tests and migrations are run by file name patterns. */
export function removeStale(root) {
  const dist = join(root, 'dist');
  if (!existsSync(dist)) return;
  for (const file of readdirSync(dist, { recursive: true })) {
    const [, source] = /^(.+)\.js(?:\.map)?$/.exec(file) ?? [];
    if (source !== undefined && !existsSync(join(root, `${source}.ts`))) rmSync(join(dist, file));
  }
}
