/**
 * Builds the programs in rust/ for this machine. They are cached by what they are made of, outside the checkout: a new
 * clone, or a branch that was built before, copies them. Must not import packages.
 */
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fail, ROOT, requireRust, run, step } from './prepare.mjs';

/** Their names here, and as crates. */
const PROGRAMS = {
  'gateway-front': 'edge-front',
  'postgres-service': 'edge-postgres-service',
  'sqlite-service': 'edge-sqlite-service',
};
/** Everything that they are made of. */
const SOURCES = [
  ...['rust/Cargo.toml', 'rust/Cargo.lock', 'rust/.cargo', 'sdk/core/src/wire'],
  ...['rust/wire', 'rust/front', 'rust/service', 'rust/postgres-service', 'rust/sqlite-service'],
];

/** Where they run from, with the key of what they are made of; `front-process.ts` and `programs.ts` know it. */
const NATIVE = join(ROOT, 'dist/native');
const KEY_FILE = join(NATIVE, 'sources');
const CACHE = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'edge-gateway/native');

/** Builds what is not there yet. A dist/ that was made elsewhere has it. */
export async function buildNative() {
  const sources = keyOfSources();
  if (allIn(NATIVE) && existsSync(KEY_FILE) && readFileSync(KEY_FILE, 'utf8') === sources) return;
  const cached = join(CACHE, `${sources}-${machine()}`);
  if (!allIn(cached)) {
    const built = await compile();
    for (const [name, crate] of Object.entries(PROGRAMS)) {
      place(join(built, crate), join(NATIVE, name));
      keep(join(built, crate), join(cached, name));
    }
  } else {
    for (const name of Object.keys(PROGRAMS)) place(join(cached, name), join(NATIVE, name));
  }
  writeFileSync(KEY_FILE, sources);
}

function allIn(folder) {
  return Object.keys(PROGRAMS).every((name) => existsSync(join(folder, name)));
}

function keyOfSources() {
  const hash = createHash('sha256');
  for (const file of SOURCES.flatMap(filesOf))
    hash.update(`${file}\0`).update(readFileSync(join(ROOT, file)));
  return hash.digest('hex').slice(0, 32);
}

/** The files of a folder, or the file itself, relative to the root. */
function filesOf(path) {
  if (statSync(join(ROOT, path)).isFile()) return [path];
  return readdirSync(join(ROOT, path))
    .sort()
    .flatMap((name) => filesOf(`${path}/${name}`));
}

/** Where a program runs: processors of this kind, with this library of C. */
function machine() {
  const { glibcVersionRuntime = 'musl' } = process.report.getReport().header;
  return `${process.arch}-${glibcVersionRuntime}`;
}

/** Resolves with the folder of the programs: in this checkout, because cargo in another one would replace them. */
async function compile() {
  await requireRust();
  step('Building the native programs, once for this version: about a minute');
  const began = performance.now();
  const target = join(ROOT, 'rust/target');
  // Quiet: other steps print their progress meanwhile.
  const code = await run('cargo', ['build', '--release', '--locked', '--quiet', '--target-dir', target], {
    cwd: join(ROOT, 'rust'),
  });
  if (code !== 0) fail('The native programs could not be built; cargo printed the reason above.');
  step(`The native programs are built (${Math.round((performance.now() - began) / 1000)} s)`);
  return join(target, 'release');
}

/** Copies a program; one that runs from the same path keeps its old file. */
function place(from, to) {
  mkdirSync(dirname(to), { recursive: true });
  const temporary = `${to}.${process.pid}`;
  copyFileSync(from, temporary);
  renameSync(temporary, to);
}

/** Copies a program to the cache, which others need not have. */
function keep(from, to) {
  try {
    place(from, to);
  } catch (error) {
    step(`The native programs are not cached for other checkouts: ${error.message}`);
  }
}
