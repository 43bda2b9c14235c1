/** What shakes the processes that tests start; see `shake.cjs`. Must not import packages. */
import { spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fail, ROOT, step } from './prepare.mjs';

/**
 * Prepares it where all users can read it, as long as this process runs, with a seed of its own unless SHAKE_SEED is
 * set. Files that run alone are shaken alike with the same seed, as far as their processes start in the same order.
 * @returns options of mocha
 */
export function shakenOptions() {
  process.env.SHAKE_SEED ??= String(Math.floor(Math.random() * 2 ** 32));
  step(`Shaking all processes, with SHAKE_SEED=${process.env.SHAKE_SEED}`);
  const folder = mkdtempSync(join(tmpdir(), 'edge-gateway-shake-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const module = join(folder, 'shake.cjs');
  const library = join(folder, 'shake.so');
  copyFileSync(join(ROOT, 'scripts/shake.cjs'), module);
  const { status, stderr } = spawnSync(
    'cc',
    ['-O1', '-Wall', '-shared', '-fPIC', '-o', library, join(ROOT, 'scripts/shake.c'), '-ldl'],
    { encoding: 'utf8' },
  );
  if (status !== 0) fail(`scripts/shake.c cannot be compiled:\n${stderr}`);
  for (const path of [folder, module, library]) chmodSync(path, 0o755);
  // Tests in Rust start the front by themselves.
  process.env.SHAKE_LIBRARY = library;
  return ['--require', module];
}
