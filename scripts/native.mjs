/**
 * Builds the programs in rust/ for this machine. They are cached by what they are made of, outside the checkout: a new
 * clone, or a branch that was built before, copies them. Must not import packages.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { fail, ROOT, requireRust, run, step } from './prepare.mjs';

const PROGRAMS = { 'postgres-service': 'edge-postgres-service' };

/** Where they run from; `src/actors/service-process/programs.ts` knows it. */
const NATIVE = join(ROOT, 'dist/native');
const CACHE = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'edge-gateway/native');
/** Everything that the programs are made of. */
const SOURCES = ['rust', 'sdk/core/src/wire'];

/** Builds what is not there yet. */
export async function buildNative() {
  // Given with dist/, on a machine without Rust.
  const version = spawnSync('rustc', ['-vV'], { cwd: ROOT, encoding: 'utf8' });
  if (version.error && allIn(NATIVE)) return;
  const cached = join(CACHE, contentKey(version.stdout ?? ''));
  if (!allIn(cached)) await compile(cached);
  for (const name of Object.keys(PROGRAMS)) place(join(cached, name), join(NATIVE, name));
}

function allIn(folder) {
  return Object.keys(PROGRAMS).every((name) => existsSync(join(folder, name)));
}

/** A hash of the sources and the compiler. */
function contentKey(compiler) {
  const hash = createHash('sha256').update(compiler);
  for (const source of SOURCES) {
    const files = readdirSync(join(ROOT, source), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)))
      .filter((file) => !file.startsWith('rust/target/'));
    for (const file of files.sort()) hash.update(`${file}\0`).update(readFileSync(join(ROOT, file)));
  }
  return hash.digest('hex').slice(0, 32);
}

async function compile(cached) {
  await requireRust();
  step('Building the native programs, once for this version: about a minute');
  const began = performance.now();
  const target = join(CACHE, 'target');
  // Quiet: other steps print their progress meanwhile.
  const code = await run('cargo', ['build', '--release', '--locked', '--quiet'], {
    cwd: join(ROOT, 'rust'),
    env: { ...process.env, CARGO_TARGET_DIR: target },
  });
  if (code !== 0) fail('The native programs could not be built; cargo printed the reason above.');
  for (const [name, crate] of Object.entries(PROGRAMS))
    place(join(target, 'release', crate), join(cached, name));
  step(`The native programs are built (${Math.round((performance.now() - began) / 1000)} s)`);
}

/** Copies a program; one that runs from the same path keeps its old file. */
function place(from, to) {
  if (existsSync(to) && readFileSync(from).equals(readFileSync(to))) return;
  mkdirSync(dirname(to), { recursive: true });
  const temporary = `${to}.${process.pid}`;
  copyFileSync(from, temporary);
  renameSync(temporary, to);
}
