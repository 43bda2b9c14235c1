/**
 * Compiles what dist/ has: the product, its tests, and the native programs; the command line, and the web UI. Must not
 * import packages.
 */
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
  await Promise.all([ready().then(() => compile('tsconfig.json', true)), buildNative()]);
}

const TSC = `${ROOT}node_modules/typescript/bin/tsc`;

/** @param alsoTypes whether the types of the web UI are checked, which its bundler does not do */
async function compile(project, alsoTypes = false) {
  step('Building');
  removeStale(ROOT);
  await succeeds(TSC, '-p', `${ROOT}${project}`);
  await succeeds(`${ROOT}scripts/processes.mjs`);
  await succeeds(`${ROOT}scripts/sdk-sources.mjs`);
  await succeeds(`${ROOT}scripts/api-types.mjs`);
  removeStale(join(ROOT, 'cli'), 'src');
  await succeeds(TSC, '-p', `${ROOT}cli/tsconfig.json`);
  await succeeds(`${ROOT}scripts/cli-assets.mjs`);
  if (alsoTypes) await succeeds(TSC, '-p', `${ROOT}ui/tsconfig.json`);
  await succeeds(`${ROOT}scripts/ui.mjs`);
}

async function succeeds(...args) {
  const code = await run(process.execPath, args);
  if (code !== 0) fail('The build failed; the compiler printed the reason above.');
}

/**
 * Removes output of deleted sources from dist/: tests and migrations are run by file name patterns.
 * @param sources the folder of the sources
 */
export function removeStale(root, sources = '') {
  const dist = join(root, 'dist');
  if (!existsSync(dist)) return;
  for (const file of readdirSync(dist, { recursive: true })) {
    // Bundles: `processes.mjs` removes those of earlier builds.
    if (file.startsWith('processes/')) continue;
    const [, source] = /^(.+)\.js(?:\.map)?$/.exec(file) ?? [];
    if (source !== undefined && !existsSync(join(root, sources, `${source}.ts`))) rmSync(join(dist, file));
  }
}
